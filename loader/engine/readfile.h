/* SPDX-License-Identifier: MIT */
/* One sample with the blocking system calls. */
#ifndef GPEMU_LOADER_ENGINE_READFILE_H
#define GPEMU_LOADER_ENGINE_READFILE_H

#include "loader/engine/engine.h"

/* What is read for a sample, into its buffer: `want` bytes at `from`, of which
 * the first `head` are not its own. */
struct readspan {
	uint64_t from;
	size_t head, want;
};

/* `direct` as struct engine_config. Sets f->data to where the bytes will be. */
struct readspan readspan(struct fetch *f, uint32_t direct);
/* What feed_done wants, when `n` bytes of the span were read. */
int64_t readspan_got(const struct readspan *s, const struct fetch *f,
		     uint64_t n);

/*
 * Read the sample into f->buf: of a file, open, fstat, read, close; of a
 * container, read. Returns what feed_done wants: the bytes read, or -errno.
 * Short and interrupted reads are continued. Where O_DIRECT is refused (EINVAL)
 * the page cache is used.
 */
int64_t readfile(struct fetch *f, uint32_t direct);

#endif
