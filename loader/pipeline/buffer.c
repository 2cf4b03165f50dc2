/* SPDX-License-Identifier: MIT */
#include "loader/pipeline/buffer.h"

#include <errno.h>
#include <stdlib.h>

#include "common/util.h"

int buffer_reserve(struct buffer *b, size_t bytes)
{
	/* an eighth spare, so that a slightly larger sample still fits */
	size_t size = bytes + bytes / 8;

	if (bytes <= b->size)
		return 0;
	buffer_free(b);
	if (size >= bytes) /* else it has overflown */
		b->data = util_alloc_pages(&size);
	b->size = b->data ? size : 0;
	return b->data ? 0 : -ENOMEM;
}

void buffer_free(struct buffer *b)
{
	free(b->data);
	b->data = NULL;
	b->size = 0;
}
