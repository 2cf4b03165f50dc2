/* SPDX-License-Identifier: MIT */
#include "cachesim/layout.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "common/util.h"

/* arbitrary: few system calls per byte */
enum { GRAIN = 1 << 20 };
/* arbitrary: far above a line of any trace, and memory for it */
enum { LINE_MOST = 16 << 20 };

static int failed(struct sim_input *in, int r)
{
	return err_set(in->err, r, "%s: %s", in->name, strerror(-r));
}

static size_t held(const struct sim_input *in)
{
	return (size_t)(in->end - in->at);
}

/* Up to `n` bytes; 0 at the end. */
static ssize_t read_some(struct sim_input *in, void *to, size_t n)
{
	ssize_t got;

	if (in->fd < 0)
		return 0;
	do
		got = read(in->fd, to, n);
	while (got < 0 && errno == EINTR);
	return got < 0 ? failed(in, -errno) : got;
}

/* Room behind the window for a byte more than it has, and for `need`. */
static int make_room(struct sim_input *in, size_t need)
{
	size_t n = held(in), want = MAX(need, n + 1);

	if (in->at > in->buffer && n)
		memmove(in->buffer, in->at, n);
	if (want > in->size) {
		size_t size = MAX(want, 2 * in->size);
		char *buffer = realloc(in->buffer, size);

		if (!buffer)
			return failed(in, -ENOMEM);
		in->buffer = buffer;
		in->size = size;
	}
	in->at = in->buffer;
	in->end = in->buffer + n;
	return 0;
}

/* --- zstd ---------------------------------------------------------------- */

static int read_raw(struct sim_input *in)
{
	ssize_t got;

	if (in->raw_at < in->raw_n || in->fd < 0)
		return 0;
	got = read_some(in, in->raw, in->grain);
	in->raw_at = 0;
	in->raw_n = got > 0 ? (size_t)got : 0;
	return got < 0 ? (int)got : 0;
}

/* Some bytes more behind the window, or `last`. */
static int unpack(struct sim_input *in)
{
	ZSTD_inBuffer from;
	ZSTD_outBuffer to = { (char *)in->end,
			      in->size - (size_t)(in->end - in->buffer), 0 };
	int r = read_raw(in);
	size_t left;

	if (r < 0)
		return r;
	from = (ZSTD_inBuffer){ in->raw, in->raw_n, in->raw_at };
	left = ZSTD_decompressStream(in->unpacker, &to, &from);
	if (ZSTD_isError(left))
		return err_set(in->err, -EINVAL, "%s: zstd: %s", in->name,
			       ZSTD_getErrorName(left));
	if (from.pos > in->raw_at || to.pos)
		in->inside = left > 0;
	else if (in->raw_at == in->raw_n)
		in->last = true;
	if (in->last && in->inside)
		return err_set(in->err, -EINVAL, "%s: zstd: truncated",
			       in->name);
	in->raw_at = from.pos;
	in->end += to.pos;
	return 0;
}

/* Frames, and those that a reader skips. Source: RFC 8878, section 3.1 */
static bool is_zstd(const unsigned char *v, size_t n)
{
	return n >= 4 && ((v[0] == 0x28 && v[1] == 0xb5 && v[2] == 0x2f &&
			   v[3] == 0xfd) ||
			  ((v[0] & 0xf0) == 0x50 && v[1] == 0x2a &&
			   v[2] == 0x4d && v[3] == 0x18));
}

/* With the first bytes in raw. */
static int begin_input(struct sim_input *in)
{
	const unsigned char *v = (unsigned char *)in->raw;

	if (!in->raw_n)
		return err_set(in->err, -EINVAL, "%s: empty", in->name);
	if (in->raw_n >= 2 && v[0] == 0x1f && v[1] == 0x8b)
		return err_set(in->err, -EINVAL,
			       "%s: gzip is not supported: zcat FILE | "
			       "gpemu-cachesim --trace -:LAYOUT",
			       in->name);
	if (!is_zstd(v, in->raw_n)) {
		in->at = in->raw;
		in->end = in->raw + in->raw_n;
		in->last = in->fd < 0;
		return 0;
	}
	in->compressed = true;
	in->unpacker = ZSTD_createDStream();
	if (!in->buffer)
		in->buffer = malloc(in->grain);
	if (!in->unpacker || !in->buffer)
		return failed(in, -ENOMEM);
	in->size = in->grain;
	in->at = in->end = in->buffer;
	return 0;
}

/* --- opening ------------------------------------------------------------- */

int sim_input_open_memory(struct sim_input *in, const void *bytes, size_t n,
			  const char *name, struct err *err)
{
	*in = (struct sim_input){ .name = name,
				  .err = err,
				  .fd = -1,
				  .grain = GRAIN,
				  .raw = (char *)bytes,
				  .raw_n = n };
	return begin_input(in);
}

int sim_input_open_fd(struct sim_input *in, int fd, size_t grain,
		      const char *name, struct err *err)
{
	*in = (struct sim_input){ .name = name,
				  .err = err,
				  .fd = fd,
				  .grain = MAX(grain, (size_t)4),
				  .own_raw = true };
	in->raw = malloc(in->grain);
	in->buffer = malloc(in->grain);
	in->size = in->grain;
	if (!in->raw || !in->buffer)
		return failed(in, -ENOMEM);
	/* as many as tell what it is */
	for (ssize_t got = 1; got && in->raw_n < 4; in->raw_n += (size_t)got) {
		got = read_some(in, in->raw + in->raw_n, in->grain - in->raw_n);
		if (got < 0)
			return (int)got;
	}
	return begin_input(in);
}

static int map(struct sim_input *in, int fd, size_t n, const char *path,
	       struct err *err)
{
	void *v = mmap(NULL, n, PROT_READ, MAP_PRIVATE, fd, 0);
	int r;

	if (v == MAP_FAILED)
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	r = sim_input_open_memory(in, v, n, path, err);
	in->mapped = n;
	return r;
}

int sim_input_open(struct sim_input *in, const char *path, struct err *err)
{
	bool standard = !strcmp(path, "-");
	_cleanup_close_ int fd = standard ? dup(STDIN_FILENO)
					  : open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	*in = (struct sim_input){ .name = path, .err = err, .fd = -1 };
	if (fd < 0 || fstat(fd, &st) < 0)
		return failed(in, -errno);
	if (S_ISDIR(st.st_mode))
		return failed(in, -EISDIR);
	/* standard input may be at any place of a file */
	if (S_ISREG(st.st_mode) && st.st_size && !standard)
		return map(in, fd, (size_t)st.st_size, path, err);
	return sim_input_open_fd(in, TAKE_FD(fd), GRAIN, path, err);
}

void sim_input_close(struct sim_input *in)
{
	if (in->mapped)
		munmap(in->raw, in->mapped);
	else if (in->own_raw)
		free(in->raw);
	free(in->buffer);
	ZSTD_freeDStream(in->unpacker);
	util_closep(&in->fd);
	*in = (struct sim_input){ .fd = -1 };
}

/* --- reading ------------------------------------------------------------- */

/* The first window is what begin_input() saw: from then on it is the buffer. */
static void leave_raw(struct sim_input *in)
{
	size_t n = held(in);

	if (n)
		memcpy(in->buffer, in->at, n);
	in->at = in->buffer;
	in->end = in->buffer + n;
	free(in->raw);
	in->raw = NULL;
}

int sim_input_fill(struct sim_input *in, size_t need)
{
	int r = 0;

	while (r == 0 && !in->last && held(in) < need) {
		ssize_t got;

		if (in->raw && !in->compressed)
			leave_raw(in);
		r = make_room(in, need);
		if (r < 0)
			return r;
		if (in->compressed) {
			r = unpack(in);
			continue;
		}
		got = read_some(in, (char *)in->end,
				in->size - (size_t)(in->end - in->buffer));
		in->last = got == 0;
		in->end += MAX(got, (ssize_t)0);
		r = got < 0 ? (int)got : 0;
	}
	return r;
}

int sim_input_line(struct sim_input *in, const char **ret, const char **ret_end)
{
	size_t seen = 0;

	for (;;) {
		const char *eol = NULL;
		int r;

		if (held(in) > seen)
			eol = memchr(in->at + seen, '\n', held(in) - seen);
		seen = held(in);
		if (eol || in->last) {
			*ret = in->at;
			*ret_end = eol ? eol : in->end;
			in->at = eol ? eol + 1 : in->end;
			return eol || seen;
		}
		if (seen >= LINE_MOST)
			return err_set(in->err, -E2BIG,
				       "%s: a line of more than %d MiB",
				       in->name, LINE_MOST >> 20);
		r = sim_input_fill(in, seen + 1);
		if (r < 0)
			return r;
	}
}
