/* SPDX-License-Identifier: MIT */
/* A binary heap of times in an array, the earliest first; all equal is one. */
#ifndef GPEMU_COMMON_HEAP_H
#define GPEMU_COMMON_HEAP_H

#include <stddef.h>
#include <stdint.h>

/* Give the heap's first a later time and put it in its place; n > 0. */
static inline void heap_replace_first(uint64_t *heap, size_t n, uint64_t later)
{
	size_t i = 0;

	for (;;) {
		size_t child = 2 * i + 1;

		if (child + 1 < n && heap[child + 1] < heap[child])
			child++;
		if (child >= n || heap[child] >= later)
			break;
		heap[i] = heap[child];
		i = child;
	}
	heap[i] = later;
}

#endif
