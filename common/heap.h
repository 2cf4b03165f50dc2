/* SPDX-License-Identifier: MIT */
/*
 * Heaps: the least of many items, in an array that its owner keeps.
 *
 *	DEFINE_HEAP(jobs, struct job, before, placed)
 *
 *	v[n++] = job;		add
 *	jobs_up(v, n - 1);
 *
 *	least = v[0];		take the least; n > 0
 *	v[0] = v[--n];
 *	jobs_fix(v, n, 0);
 *
 *	v[i] = v[--n];		take any
 *	jobs_fix(v, n, i);
 *
 *	v[i] = other;		change one
 *	jobs_fix(v, n, i);
 *
 * `before(const item *, const item *)` is the order; equal items may leave in
 * any. `placed(const item *, size_t i)` is called with every item that now
 * stands at `i`, for items that must be found again.
 *
 * An item has four children (Johnson, "Priority queues with update and finding
 * minimum spanning trees", Information Processing Letters, 1975): half the
 * levels of two, and those of 16 bytes share a cache line. A macro and not a
 * function with callbacks, so that `before` is inlined.
 */
#ifndef GPEMU_COMMON_HEAP_H
#define GPEMU_COMMON_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/util.h"

enum { HEAP_CHILDREN = 4 };

/* `placed` where nobody needs to know. */
#define heap_unplaced(item, i) ((void)0)

/*
 * name_up: the item at `i` may be less than it was. name_down: it may be more.
 * name_fix: either; nothing where i is n.
 */
#define DEFINE_HEAP(name, item, before, placed)                        \
	__attribute__((unused)) static inline void name##_up(item *v,  \
							     size_t i) \
	{                                                              \
		item const x = v[i];                                   \
                                                                       \
		while (i && before(&x, &v[(i - 1) / HEAP_CHILDREN])) { \
			v[i] = v[(i - 1) / HEAP_CHILDREN];             \
			placed(&v[i], i);                              \
			i = (i - 1) / HEAP_CHILDREN;                   \
		}                                                      \
		v[i] = x;                                              \
		placed(&v[i], i);                                      \
	}                                                              \
                                                                       \
	__attribute__((unused)) static inline void name##_down(        \
		item *v, size_t n, size_t i)                           \
	{                                                              \
		item const x = v[i];                                   \
		size_t first;                                          \
                                                                       \
		while ((first = i * HEAP_CHILDREN + 1) < n) {          \
			size_t least = first;                          \
			size_t end = MIN(first + HEAP_CHILDREN, n);    \
                                                                       \
			for (size_t k = first + 1; k < end; k++)       \
				if (before(&v[k], &v[least]))          \
					least = k;                     \
			if (!before(&v[least], &x))                    \
				break;                                 \
			v[i] = v[least];                               \
			placed(&v[i], i);                              \
			i = least;                                     \
		}                                                      \
		v[i] = x;                                              \
		placed(&v[i], i);                                      \
	}                                                              \
                                                                       \
	__attribute__((unused)) static inline void name##_fix(         \
		item *v, size_t n, size_t i)                           \
	{                                                              \
		if (i >= n)                                            \
			return;                                        \
		if (i && before(&v[i], &v[(i - 1) / HEAP_CHILDREN]))   \
			name##_up(v, i);                               \
		else                                                   \
			name##_down(v, n, i);                          \
	}

static inline bool heap_earlier(const uint64_t *a, const uint64_t *b)
{
	return *a < *b;
}

/* Of times, the earliest first; all equal is one. */
DEFINE_HEAP(heap_times, uint64_t, heap_earlier, heap_unplaced)

#endif
