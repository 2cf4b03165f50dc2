/* SPDX-License-Identifier: MIT */
#include "service/core/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <xxhash.h>

#include "common/replace.h"
#include "common/util.h"
#include "net/wire.h"

static const char magic[8] = "gpemujrn";

/* It is shortened at twice the size and so many bytes more. arbitrary: some ten
 * thousand splits */
enum { SLACK = 1 << 20 };

static void begin_journal(unsigned char ret[JOURNAL_START])
{
	memcpy(ret, magic, sizeof(magic));
	wire_put(ret + sizeof(magic), JOURNAL_VERSION, 4);
}

/* --- reading -------------------------------------------------------------- */

static bool all_zero(const unsigned char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (bytes[i])
			return false;
	return true;
}

/* The next record. 1; 0: the end, or a tail; -EBADMSG. */
static int next_record(struct wire *w, const unsigned char **ret, size_t *ret_n)
{
	struct wire at = *w;
	uint32_t n = (uint32_t)wire_get(&at, 4);
	uint32_t check = (uint32_t)wire_get(&at, 4);
	uint64_t hash = wire_get(&at, 8);
	const unsigned char *bytes;

	if (at.bad || all_zero(w->at, w->left))
		return 0;
	if (n != ~check)
		return -EBADMSG;
	bytes = wire_bytes(&at, n);
	if (at.bad)
		return 0;
	if (XXH3_64bits_withSeed(bytes, n, n) != hash)
		return all_zero(at.at, at.left) ? 0 : -EBADMSG;
	*w = at;
	*ret = bytes;
	*ret_n = n;
	return 1;
}

int journal_scan(const unsigned char *bytes, size_t n, journal_fn fn, void *ctx,
		 size_t *ret_good)
{
	unsigned char start[JOURNAL_START];
	struct wire w = { .at = bytes, .left = n };
	const unsigned char *record;
	size_t n_record;
	int r;

	*ret_good = 0;
	begin_journal(start);
	/* it was killed before the start was complete */
	if (n < JOURNAL_START)
		return memcmp(bytes, start, n) && !all_zero(bytes, n) ? -EBADMSG
								      : 0;
	if (all_zero(bytes, n))
		return 0;
	if (memcmp(bytes, magic, sizeof(magic)) != 0)
		return -EBADMSG;
	wire_bytes(&w, JOURNAL_START);
	if (memcmp(bytes, start, JOURNAL_START) != 0)
		return -EPROTONOSUPPORT;
	*ret_good = JOURNAL_START;
	while ((r = next_record(&w, &record, &n_record)) == 1) {
		r = fn(ctx, record, n_record);
		if (r < 0)
			return r;
		*ret_good = n - w.left;
	}
	return r;
}

static int apply(void *ctx, const unsigned char *bytes, size_t n)
{
	struct msg event;
	int r = msg_decode(bytes, n, &event);

	return r < 0 ? r : book_apply(ctx, &event);
}

static int replay(struct journal *j, struct book *book, struct err *err)
{
	_cleanup_free_ char *bytes = NULL;
	size_t n, good = 0;
	int r = util_read_whole(j->fd, SIZE_MAX, &bytes, &n);

	if (r == 0)
		r = journal_scan((unsigned char *)bytes, n, apply, book, &good);
	if (r == -EBADMSG)
		return err_set(err, r,
			       "%s: not a journal of gpemu-prepd, or damaged "
			       "at byte %zu: move it away to start afresh",
			       j->path, good);
	if (r == -EPROTONOSUPPORT)
		return err_set(
			err, r,
			"%s: of a different version of gpemu-prepd: move it "
			"away to start afresh",
			j->path);
	if (r == -EPROTO)
		return err_set(err, r,
			       "%s: the record at byte %zu does not follow "
			       "from those before: move it away to start "
			       "afresh",
			       j->path, good);
	if (r == 0 && good < n && ftruncate(j->fd, (off_t)good) < 0)
		r = -errno;
	if (r < 0)
		return err_set(err, r, "%s: %s", j->path, strerror(-r));
	j->cut = n - good;
	j->bytes = good;
	return 0;
}

/* --- writing -------------------------------------------------------------- */

static int put_record(int fd, const struct msg *event, uint64_t *bytes)
{
	size_t n = PREPD_HEAD + event->n_rest;
	_cleanup_free_ unsigned char *record = malloc(JOURNAL_RECORD + n);
	unsigned char *at;
	int r;

	if (!record)
		return -ENOMEM;
	at = record + JOURNAL_RECORD;
	msg_encode(event, at);
	if (event->n_rest)
		memcpy(at + PREPD_HEAD, event->rest, event->n_rest);
	wire_put(record, n, 4);
	wire_put(record + 4, ~(uint32_t)n, 4);
	wire_put(record + 8, XXH3_64bits_withSeed(at, n, n), 8);
	r = util_write_all(fd, record, JOURNAL_RECORD + n);
	if (r == 0)
		*bytes += JOURNAL_RECORD + n;
	return r;
}

int journal_put(struct journal *j, const struct msg *event)
{
	return j->fd < 0 ? 0 : put_record(j->fd, event, &j->bytes);
}

int journal_sync(struct journal *j)
{
	return j->fd >= 0 && fdatasync(j->fd) < 0 ? -errno : 0;
}

struct fresh {
	int fd;
	uint64_t bytes;
};

static int put_fresh(void *ctx, const struct msg *event)
{
	struct fresh *f = ctx;

	return put_record(f->fd, event, &f->bytes);
}

static int write_fresh(struct fresh *f, const struct book *book)
{
	unsigned char start[JOURNAL_START];
	int r;

	begin_journal(start);
	r = util_write_all(f->fd, start, sizeof(start));
	f->bytes = sizeof(start);
	if (r == 0)
		r = book_dump(book, put_fresh, f);
	if (r == 0 && (fsync(f->fd) < 0 || flock(f->fd, LOCK_EX | LOCK_NB) < 0))
		r = -errno;
	return r;
}

static int rewrite(struct journal *j, const struct book *book)
{
	struct replace replace;
	struct fresh f = { .fd = replace_begin(&replace, AT_FDCWD, j->path,
					       0600) };
	int r = f.fd;

	if (r < 0)
		return r;
	r = replace_end(&replace, write_fresh(&f, book));
	if (r < 0) {
		close(f.fd);
		return r;
	}
	if (j->fd >= 0)
		close(j->fd);
	j->fd = f.fd;
	j->bytes = j->least_bytes = f.bytes;
	return 0;
}

int journal_shorten(struct journal *j, const struct book *book)
{
	if (j->fd < 0 || j->bytes < 2 * j->least_bytes + SLACK)
		return 0;
	return rewrite(j, book);
}

/* --- opening -------------------------------------------------------------- */

/* Is the file that was locked still the one at the path? */
static bool is_current(const struct journal *j)
{
	struct stat here, there;

	return fstat(j->fd, &here) == 0 && stat(j->path, &there) == 0 &&
	       here.st_ino == there.st_ino && here.st_dev == there.st_dev;
}

int journal_open(struct journal *j, const char *path, struct book *book,
		 struct err *err)
{
	struct stat st;
	int r;

	*j = (struct journal){ .fd = -1 };
	if (!path)
		return 0;
	j->path = strdup(path);
	if (!j->path)
		return err_set(err, -ENOMEM, "out of memory");
	/* in a folder of several users: no link, and below no pipe, of another
	 */
	j->fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC,
		     0600);
	if (j->fd < 0 || fstat(j->fd, &st) < 0)
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode) || !util_follows(st.st_uid))
		return err_set(err, -EINVAL,
			       "%s: not a regular file of this user", path);
	if (flock(j->fd, LOCK_EX | LOCK_NB) < 0 || !is_current(j))
		return err_set(err, -EBUSY,
			       "%s: another dispatcher uses this journal",
			       path);
	r = replay(j, book, err);
	if (r < 0)
		return r;
	r = rewrite(j, book);
	return r < 0 ? err_set(err, r, "%s: %s", path, strerror(-r)) : 0;
}

void journal_close(struct journal *j)
{
	if (j->fd >= 0)
		close(j->fd);
	free(j->path);
	*j = (struct journal){ .fd = -1 };
}
