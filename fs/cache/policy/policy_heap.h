/* SPDX-License-Identifier: MIT */
/*
 * What policies that keep the entries of the highest priority have in common:
 * an object that does not fit beside the others is admitted if its priority is
 * above the least, and that entry is the victim; among equals the one inserted
 * first. All entries are in a heap (common/heap.h), which admit grows by
 * doubling.
 *
 * The state of the policy begins with a struct policy_heap. Functions of a
 * `state` are hooks of struct policy_ops.
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
	uint32_t n;
	size_t allocated;
	uint64_t n_placed; /* in total; the next `order` */
	uint64_t capacity, used;
	uint64_t overhead; /* of an entry, beyond its object's bytes */
};

/* The first of the entry's private bytes. */
struct policy_heap_place {
	uint32_t at;
};

int policy_heap_init(void *state, const struct policy_params *params,
		     struct err *err);
void policy_heap_fini(void *state);
/* Also false: no memory. */
bool policy_heap_admit(struct policy_heap *h, const struct cache_object *object,
		       double priority);
void policy_heap_add(struct policy_heap *h, struct cache_entry *e,
		     double priority);
/* Change the priority of an entry; it becomes the last among equals. */
void policy_heap_change(struct policy_heap *h, struct cache_entry *e,
			double priority);
void policy_heap_removed(void *state, struct cache_entry *entry);
struct cache_entry *policy_heap_victim(void *state);

#endif
