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

struct sff_online {
	struct policy_heap heap; /* the largest file is the root */
	uint64_t capacity, used;
	uint64_t overhead; /* of the last entry, beyond its object's bytes */
};

static int sff_online_init(void *state, const struct policy_params *params,
			   struct err *err)
{
	struct sff_online *s = state;

	(void)err;
	s->capacity = params->capacity_bytes;
	return 0;
}

static void sff_online_fini(void *state)
{
	struct sff_online *s = state;

	policy_heap_fini(&s->heap);
}

static bool sff_online_admit(void *state, const struct cache_object *object,
			     struct cache_entry *ghost)
{
	struct sff_online *s = state;

	(void)ghost;
	if (!policy_heap_reserve(&s->heap))
		return false;
	return s->used + object->bytes + s->overhead <= s->capacity ||
	       (s->heap.n && (double)object->file_bytes <
				     -policy_heap_least(&s->heap)->priority);
}

static void sff_online_inserted(void *state, struct cache_entry *entry,
				const struct cache_object *object)
{
	struct sff_online *s = state;

	s->used += entry->bytes;
	s->overhead = entry->bytes - object->bytes;
	policy_heap_add(&s->heap, entry, -(double)object->file_bytes);
}

static void sff_online_removed(void *state, struct cache_entry *entry)
{
	struct sff_online *s = state;

	s->used -= entry->bytes;
	policy_heap_remove(&s->heap, entry);
}

static struct cache_entry *sff_online_victim(void *state)
{
	struct sff_online *s = state;

	return policy_heap_least(&s->heap)->entry;
}

const struct policy_ops policy_sff_online = {
	.plugin = { .name = "sff_online",
		    .summary = "small files first, by the sizes seen so far",
		    .state_size = sizeof(struct sff_online) },
	.entry_size = sizeof(struct policy_heap_place),
	.overhead_bytes = 2 * sizeof(struct policy_heap_item),
	.init = sff_online_init,
	.fini = sff_online_fini,
	.admit = sff_online_admit,
	.inserted = sff_online_inserted,
	.removed = sff_online_removed,
	.victim = sff_online_victim,
};
