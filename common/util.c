/* SPDX-License-Identifier: MIT */
#include "common/util.h"

#include <errno.h>
#include <stdint.h>

int util_compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

int util_write_all(int fd, const void *buf, size_t n)
{
	for (const char *p = buf; n;) {
		ssize_t put = write(fd, p, n);

		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return put < 0 ? -errno : -EIO;
		p += put;
		n -= (size_t)put;
	}
	return 0;
}
