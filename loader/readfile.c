/* SPDX-License-Identifier: MIT */
#include "loader/readfile.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "common/util.h"

int64_t readfile(int dirfd, const char *path, void *buf, uint64_t size)
{
	_cleanup_close_ int fd = -1;
	struct stat st;
	uint64_t n = 0;

	do
		fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);
	while (fd < 0 && errno == EINTR);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	while (n <= size) {
		ssize_t r = read(fd, (char *)buf + n, size + 1 - n);

		if (r < 0 && errno != EINTR)
			return -errno;
		if (r > 0)
			n += (uint64_t)r;
		/* fstat saved the read that would only say "end of file" */
		if (r == 0 || (r > 0 && n == (uint64_t)st.st_size))
			break;
	}
	return (int64_t)n;
}
