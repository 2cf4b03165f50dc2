/* SPDX-License-Identifier: MIT */
/* For functions that open a file by name: a file in memory with a name. */
#ifndef GPEMU_TESTS_FUZZ_FILE_H
#define GPEMU_TESTS_FUZZ_FILE_H

#include <sys/mman.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"

/* A file of these bytes; *ret_path is its name, valid until the next call. */
static inline void fuzz_file(const uint8_t *data, size_t n, char ret_path[32])
{
	static int fd = -1;

	if (fd < 0)
		fd = memfd_create("fuzz", MFD_CLOEXEC);
	PROMISED(fd >= 0 && ftruncate(fd, 0) == 0);
	PROMISED(pwrite(fd, data, n, 0) == (ssize_t)n);
	snprintf(ret_path, 32, "/proc/self/fd/%d", fd);
}

#endif
