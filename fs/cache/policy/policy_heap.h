/* SPDX-License-Identifier: MIT */
/*
 * All cached entries by priority: the root is the least (common/heap.h), and
 * among equals the one inserted first. Grows in admit, by doubling.
 */
#ifndef GPEMU_FS_CACHE_POLICY_POLICY_HEAP_H
#define GPEMU_FS_CACHE_POLICY_POLICY_HEAP_H

#include "fs/cache/policy.h"

struct policy_heap_item {
	double priority;
	uint64_t order; /* breaks ties */
	struct cache_entry *entry;
};

struct policy_heap {
	struct policy_heap_item *v;
	uint32_t n, allocated;
	uint64_t n_placed; /* in total; the next `order` */
};

/* The first of the entry's private bytes. */
struct policy_heap_place {
	uint32_t at;
};

/* Reserve space for one more; false: no memory. */
bool policy_heap_reserve(struct policy_heap *h);
void policy_heap_fini(struct policy_heap *h);
void policy_heap_add(struct policy_heap *h, struct cache_entry *e,
		     double priority);
/* Change the priority of an entry; it becomes the last among equals. */
void policy_heap_change(struct policy_heap *h, struct cache_entry *e,
			double priority);
void policy_heap_remove(struct policy_heap *h, struct cache_entry *e);
/* The entry of least priority; the heap must not be empty. */
static inline const struct policy_heap_item *
policy_heap_least(const struct policy_heap *h)
{
	return &h->v[0];
}

#endif
