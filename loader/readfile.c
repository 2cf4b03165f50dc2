/* SPDX-License-Identifier: MIT */
#include "loader/readfile.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "common/util.h"

/* Up to `want` bytes from `offset` on; stops early once `end` are there. */
static int64_t read_range(int fd, char *buf, uint64_t offset, uint64_t want,
			  uint64_t end)
{
	uint64_t n = 0;

	while (n < want) {
		ssize_t r = pread(fd, buf + n, want - n, (off_t)(offset + n));

		if (r < 0 && errno != EINTR)
			return -errno;
		if (r > 0)
			n += (uint64_t)r;
		if (r == 0 || (r > 0 && n == end))
			break;
	}
	return (int64_t)n;
}

int64_t readfile(const struct fetch *f)
{
	_cleanup_close_ int fd = -1;
	struct stat st;

	if (f->fd >= 0)
		return read_range(f->fd, f->buf, f->offset, f->size, f->size);
	do
		fd = openat(f->dirfd, f->path, O_RDONLY | O_CLOEXEC);
	while (fd < 0 && errno == EINTR);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	/* fstat saves the read that would only say "end of file" */
	return read_range(fd, f->buf, 0, f->size + 1, (uint64_t)st.st_size);
}
