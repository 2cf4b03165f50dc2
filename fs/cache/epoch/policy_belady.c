/* SPDX-License-Identifier: MIT */
/*
 * The offline optimum for objects of one size (MIN; Belady, "A study of
 * replacement algorithms for a virtual-storage computer", IBM Systems Journal,
 * 1966): evict the object whose next use is furthest away. An object whose next
 * use is later than that of all cached objects is not admitted. So no policy of
 * this cache, which may reject, gets more hits.
 */
#include "fs/cache/policy/policy_heap.h"

struct belady {
	struct policy_heap heap; /* by -next_use: the last is the root */
	uint64_t capacity, used;
	uint64_t overhead; /* of the last entry, beyond its object's bytes */
};

static int belady_init(void *state, const struct policy_params *params,
		       struct err *err)
{
	struct belady *s = state;

	(void)err;
	s->capacity = params->capacity_bytes;
	return 0;
}

static void belady_fini(void *state)
{
	struct belady *s = state;

	policy_heap_fini(&s->heap);
}

static bool belady_admit(void *state, const struct cache_object *object,
			 struct cache_entry *ghost)
{
	struct belady *s = state;

	(void)ghost;
	if (object->next_use == POLICY_NEVER || !policy_heap_reserve(&s->heap))
		return false;
	return s->used + object->bytes + s->overhead <= s->capacity ||
	       (s->heap.n && (double)object->next_use <
				     -policy_heap_least(&s->heap)->priority);
}

static void belady_inserted(void *state, struct cache_entry *entry,
			    const struct cache_object *object)
{
	struct belady *s = state;

	s->used += entry->bytes;
	s->overhead = entry->bytes - object->bytes;
	policy_heap_add(&s->heap, entry, -(double)object->next_use);
}

static void belady_hit(void *state, struct cache_entry *entry,
		       uint64_t next_use)
{
	struct belady *s = state;

	policy_heap_change(&s->heap, entry, -(double)next_use);
}

static void belady_removed(void *state, struct cache_entry *entry)
{
	struct belady *s = state;

	s->used -= entry->bytes;
	policy_heap_remove(&s->heap, entry);
}

static struct cache_entry *belady_victim(void *state)
{
	struct belady *s = state;

	return policy_heap_least(&s->heap)->entry;
}

const struct policy_ops policy_belady = {
	.plugin = { .name = "belady",
		    .summary = "optimum for objects of one size "
			       "(gpemu-cachesim only)",
		    .state_size = sizeof(struct belady) },
	.entry_size = sizeof(struct policy_heap_place),
	.overhead_bytes = 2 * sizeof(struct policy_heap_item),
	.offline = true,
	.init = belady_init,
	.fini = belady_fini,
	.admit = belady_admit,
	.inserted = belady_inserted,
	.hit = belady_hit,
	.removed = belady_removed,
	.victim = belady_victim,
};
