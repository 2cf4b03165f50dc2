/* SPDX-License-Identifier: MIT */
#include "loader/engine/readfile.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "common/util.h"
#include "loader/engine/store.h"

struct readspan readspan(struct engine_fetch *f, uint32_t direct)
{
	uint64_t unit = direct ? direct : 1;
	struct readspan s = { 0 };

	if (f->fd >= 0) {
		s.from = f->offset & ~(unit - 1);
		s.head = f->offset - s.from;
	}
	/* one byte more than the file has, to detect that it has grown */
	s.want = s.head + f->size + (f->fd < 0);
	s.want = (s.want + unit - 1) & ~(unit - 1);
	f->data = (char *)f->buf + s.head;
	return s;
}

int64_t readspan_got(const struct readspan *s, const struct engine_fetch *f,
		     uint64_t n)
{
	n = n > s->head ? n - s->head : 0;
	return (int64_t)MIN(n, f->size + (f->fd < 0));
}

/*
 * Read the span, or as far as `end`, the end of the file. A read around the
 * page cache can only continue at an aligned offset; at the end of the file it
 * then returns the same bytes again.
 */
static int64_t read_on(int fd, char *buf, const struct readspan *s,
		       uint64_t end, uint32_t unit)
{
	uint64_t n = 0, at = 0;

	while (n < end && at < s->want) {
		ssize_t r = pread(fd, buf + at, s->want - at,
				  (off_t)(s->from + at));

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -errno;
		if (at + (uint64_t)r <= n)
			break;
		n = at + (uint64_t)r;
		at = n / unit * unit;
	}
	return (int64_t)n;
}

static int64_t read_once(struct engine_fetch *f, uint32_t direct)
{
	struct readspan s = readspan(f, direct);
	uint32_t unit = direct ? direct : 1;
	_cleanup_close_ int own = -1;
	uint64_t end = s.head + f->size;
	struct stat st;
	int64_t n;

	if (f->fd < 0) {
		own = util_open_file(f->dirfd, f->path, direct ? O_DIRECT : 0,
				     &st);
		if (own < 0)
			return own;
		/* saves the read that would only return the end of file */
		end = (uint64_t)st.st_size;
	}
	n = read_on(f->fd < 0 ? own : f->fd, f->buf, &s, end, unit);
	return n < 0 ? n : readspan_got(&s, f, (uint64_t)n);
}

int64_t readfile(struct engine_fetch *f, uint32_t direct)
{
	int64_t n = f->bucket ? store_read(f) : read_once(f, direct);

	return n == -EINVAL && direct ? read_once(f, 0) : n;
}
