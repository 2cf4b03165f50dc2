/* SPDX-License-Identifier: MIT */
#include "loader/pipeline/buffer.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

/* Buffers of this size and more request huge pages: a batch is touched front to
 * back, and 4 KiB faults cost as much as copying the bytes. */
enum { HUGE = 2 << 20, PAGE = 4096 };

int buffer_reserve(struct buffer *b, size_t bytes)
{
	size_t align = bytes >= HUGE ? HUGE : PAGE;
	/* an eighth spare, so that a slightly larger sample still fits */
	size_t size = (bytes + bytes / 8 + align - 1) / align * align;
	void *p;

	if (bytes <= b->size)
		return 0;
	buffer_free(b);
	if (size < bytes) /* it has overflown */
		return -ENOMEM;
	if (posix_memalign(&p, align, size))
		return -ENOMEM;
	if (align == HUGE)
		madvise(p, size, MADV_HUGEPAGE); /* a hint; may be refused */
	b->data = p;
	b->size = size;
	return 0;
}

void buffer_free(struct buffer *b)
{
	free(b->data);
	b->data = NULL;
	b->size = 0;
}
