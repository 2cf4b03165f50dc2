/* SPDX-License-Identifier: MIT */
/* Memory for samples: page-aligned, reused, grown by replacing. */
#ifndef GPEMU_LOADER_BUFFER_H
#define GPEMU_LOADER_BUFFER_H

#include <stddef.h>

/* All zeros is the empty buffer. */
struct buffer {
	char *data; /* 4096-aligned; content not kept when it grows */
	size_t size;
};

/* Room for at least `bytes`. 0 or -ENOMEM (the buffer is then empty). */
int buffer_reserve(struct buffer *b, size_t bytes);
void buffer_free(struct buffer *b);

#endif
