/* SPDX-License-Identifier: MIT */
/* Memory for samples: page-aligned, reused, replaced by a larger block to
 * grow. */
#ifndef GPEMU_LOADER_PIPELINE_BUFFER_H
#define GPEMU_LOADER_PIPELINE_BUFFER_H

#include <stddef.h>
#include <stdint.h>

/* A zeroed struct is the empty buffer. */
struct buffer {
	char *data; /* 4096-aligned; growth discards the content */
	size_t size;
};

/* Room for at least `bytes`. 0 or -ENOMEM (the buffer is then empty). */
int buffer_reserve(struct buffer *b, size_t bytes);
void buffer_free(struct buffer *b);

/*
 * Bytes to reserve for a sample: one more than its size. With aligned reads in
 * units of `direct` bytes (a power of two; 0: none): whole units, with the
 * neighbours' bytes in them.
 */
static inline size_t buffer_room(uint64_t size, uint32_t direct)
{
	if (direct == 0)
		return size + 1;
	return (size + 2 * (uint64_t)direct - 1) & ~((uint64_t)direct - 1);
}

#endif
