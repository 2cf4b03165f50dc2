/* SPDX-License-Identifier: MIT */
/*
 * Small file first, without knowing the sizes beforehand. The threshold of
 * policy_sff is a quantile of the dataset's bytes. Here it is the same quantile
 * of the bytes seen so far, and needs no estimate: it is the largest size in
 * the full cache. A smaller file evicts the largest one; any other is rejected.
 *
 * So the first pass over a dataset evicts, and at its end the cache holds the
 * smallest files, as with sff; after that nothing is evicted. Without eviction
 * the files read first would stay, whatever their size: the threshold is right
 * only at the end of the pass, too late to reject them.
 */
#include "fs/cache/policy/policy_heap.h"

static bool sff_online_admit(void *state, const struct cache_object *object,
			     struct cache_entry *ghost)
{
	(void)ghost;
	return policy_heap_admit(state, object, -(double)object->file_bytes);
}

static void sff_online_inserted(void *state, struct cache_entry *entry,
				const struct cache_object *object)
{
	policy_heap_add(state, entry, -(double)object->file_bytes);
}

const struct policy_ops policy_sff_online = {
	.plugin = { .name = "sff_online",
		    .summary = "small files first, by the sizes seen so far",
		    .state_size = sizeof(struct policy_heap) },
	.entry_size = sizeof(struct policy_heap_place),
	.overhead_bytes = 2 * sizeof(struct policy_heap_item),
	.init = policy_heap_init,
	.fini = policy_heap_fini,
	.admit = sff_online_admit,
	.inserted = sff_online_inserted,
	.removed = policy_heap_removed,
	.victim = policy_heap_victim,
};
