/* SPDX-License-Identifier: MIT */
/*
 * The offline optimum for objects of one size (MIN; Belady, "A study of
 * replacement algorithms for a virtual-storage computer", IBM Systems Journal,
 * 1966): evict the object whose next use is furthest away. An object whose next
 * use is later than that of all cached objects is not admitted. So no policy of
 * this cache, which may reject, gets more hits.
 */
#include "fs/cache/policy/policy_heap.h"

static bool belady_admit(void *state, const struct cache_object *object,
			 struct cache_entry *ghost)
{
	(void)ghost;
	return object->next_use != POLICY_NEVER &&
	       policy_heap_admit(state, object, -(double)object->next_use);
}

static void belady_inserted(void *state, struct cache_entry *entry,
			    const struct cache_object *object)
{
	policy_heap_add(state, entry, -(double)object->next_use);
}

static void belady_hit(void *state, struct cache_entry *entry,
		       uint64_t next_use)
{
	policy_heap_change(state, entry, -(double)next_use);
}

const struct policy_ops policy_belady = {
	.plugin = { .name = "belady",
		    .summary = "optimum for objects of one size "
			       "(gpemu-cachesim only)",
		    .state_size = sizeof(struct policy_heap) },
	.entry_size = sizeof(struct policy_heap_place),
	.overhead_bytes = 2 * sizeof(struct policy_heap_item),
	.offline = true,
	.init = policy_heap_init,
	.fini = policy_heap_fini,
	.admit = belady_admit,
	.inserted = belady_inserted,
	.hit = belady_hit,
	.removed = policy_heap_removed,
	.victim = policy_heap_victim,
};
