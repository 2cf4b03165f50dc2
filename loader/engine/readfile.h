/* SPDX-License-Identifier: MIT */
/* Reads one sample with blocking system calls. */
#ifndef GPEMU_LOADER_ENGINE_READFILE_H
#define GPEMU_LOADER_ENGINE_READFILE_H

#include "loader/engine/engine.h"

/* The range to read for a sample, into its buffer: `want` bytes at `from`; the
 * first `head` precede the sample. */
struct readspan {
	uint64_t from;
	size_t head, want;
};

/* `direct` as struct engine_config. Points f->data at the sample in the
 * buffer. */
struct readspan readspan(struct engine_fetch *f, uint32_t direct);
/* The result for feed_done after `n` bytes of the span were read. */
int64_t readspan_got(const struct readspan *s, const struct engine_fetch *f,
		     uint64_t n);

/*
 * Read the sample into f->buf: for a file, open, fstat, read, close; for a
 * container, read. Returns the result for feed_done: the bytes read, or -errno.
 * Continues short and interrupted reads. Uses the page cache where O_DIRECT is
 * refused (EINVAL).
 */
int64_t readfile(struct engine_fetch *f, uint32_t direct);

#endif
