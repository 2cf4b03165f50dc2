/* SPDX-License-Identifier: MIT */
/* Memory for samples: page-aligned, reused, grown by replacing. */
#ifndef GPEMU_LOADER_PIPELINE_BUFFER_H
#define GPEMU_LOADER_PIPELINE_BUFFER_H

#include <stddef.h>
#include <stdint.h>

/* All zeros is the empty buffer. */
struct buffer {
	char *data; /* 4096-aligned; content not kept when it grows */
	size_t size;
};

/* Room for at least `bytes`. 0 or -ENOMEM (the buffer is then empty). */
int buffer_reserve(struct buffer *b, size_t bytes);
void buffer_free(struct buffer *b);

/*
 * Bytes to set aside for a sample: one more than it has; where it is read in
 * aligned pieces of `direct` bytes (a power of two, 0: it is not), what it and
 * its neighbours in these pieces take, and whole pieces.
 */
static inline size_t buffer_room(uint64_t size, uint32_t direct)
{
	if (direct == 0)
		return size + 1;
	return (size + 2 * (uint64_t)direct - 1) & ~((uint64_t)direct - 1);
}

#endif
