/* SPDX-License-Identifier: MIT */
/*
 * Least frequently used, counted while an object is cached ("in-cache LFU";
 * Breslau et al., "Web caching and Zipf-like distributions", INFOCOM 1999).
 * Among equals the victim is the least recently used.
 */
#include "fs/cache/policy/policy_heap.h"

struct lfu_entry {
	struct policy_heap_place place;
	uint32_t uses;
};

static void lfu_fini(void *state)
{
	policy_heap_fini(state);
}

static bool lfu_admit(void *state, const struct cache_object *object,
		      struct cache_entry *ghost)
{
	(void)object;
	(void)ghost;
	return policy_heap_reserve(state);
}

static void lfu_inserted(void *state, struct cache_entry *entry,
			 const struct cache_object *object)
{
	struct lfu_entry *x = cache_entry_data(entry);

	(void)object;
	x->uses = 1;
	policy_heap_add(state, entry, x->uses);
}

static void lfu_hit(void *state, struct cache_entry *entry,
		    const struct cache_object *object)
{
	struct lfu_entry *x = cache_entry_data(entry);

	(void)object;
	x->uses += x->uses < UINT32_MAX;
	policy_heap_change(state, entry, x->uses);
}

static void lfu_removed(void *state, struct cache_entry *entry)
{
	policy_heap_remove(state, entry);
}

static struct cache_entry *lfu_victim(void *state)
{
	return policy_heap_least(state)->entry;
}

const struct policy_ops policy_lfu = {
	.plugin = { .name = "lfu",
		    .summary = "evict the least frequently used object",
		    .state_size = sizeof(struct policy_heap) },
	.entry_size = sizeof(struct lfu_entry),
	.overhead_bytes = 2 * sizeof(struct policy_heap_item),
	.fini = lfu_fini,
	.admit = lfu_admit,
	.inserted = lfu_inserted,
	.hit = lfu_hit,
	.removed = lfu_removed,
	.victim = lfu_victim,
};
