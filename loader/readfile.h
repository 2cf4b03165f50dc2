/* SPDX-License-Identifier: MIT */
/* One file with the blocking system calls. */
#ifndef GPEMU_LOADER_READFILE_H
#define GPEMU_LOADER_READFILE_H

#include <stdint.h>

/*
 * Open, fstat, read, close: up to size + 1 bytes of the file at `path` into
 * `buf`. Returns the bytes read, which is size + 1 when the file is longer
 * than size, or -errno. Short and interrupted reads are continued.
 */
int64_t readfile(int dirfd, const char *path, void *buf, uint64_t size);

#endif
