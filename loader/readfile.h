/* SPDX-License-Identifier: MIT */
/* One sample with the blocking system calls. */
#ifndef GPEMU_LOADER_READFILE_H
#define GPEMU_LOADER_READFILE_H

#include "loader/engine.h"

/*
 * Read the sample into f->buf: of a file, open, fstat, read, close, and up to
 * size + 1 bytes; of a container, `size` bytes. Returns what feed_done wants:
 * the bytes read, or -errno. Short and interrupted reads are continued.
 */
int64_t readfile(const struct fetch *f);

#endif
