/* SPDX-License-Identifier: MIT */
/*
 * Greedy-Dual-Size-Frequency (Cherkasova, "Improving WWW proxies performance
 * with Greedy-Dual-Size-Frequency caching policy", HP Laboratories report
 * HPL-98-69, 1998): the victim has the least
 *
 *	H = L + uses x cost / size
 *
 * where L is the H of the last victim, so that unused entries age. The cost of
 * a miss is 1 here, the report's choice for most object hits.
 */
#include "fs/cache/policy/policy_heap.h"

struct gdsf {
	struct policy_heap heap;
	double age; /* L */
};

struct gdsf_entry {
	struct policy_heap_place place;
	uint32_t uses;
};

static void gdsf_fini(void *state)
{
	struct gdsf *s = state;

	policy_heap_fini(&s->heap);
}

static bool gdsf_admit(void *state, const struct cache_object *object,
		       struct cache_entry *ghost)
{
	struct gdsf *s = state;

	(void)object;
	(void)ghost;
	return policy_heap_reserve(&s->heap);
}

static double value_of(const struct gdsf *s, struct cache_entry *e)
{
	const struct gdsf_entry *x = cache_entry_data(e);
	uint64_t bytes = e->bytes ? e->bytes
				  : 1; /* an empty file counts as one byte */

	return s->age + (double)x->uses / (double)bytes;
}

static void gdsf_inserted(void *state, struct cache_entry *entry,
			  const struct cache_object *object)
{
	struct gdsf *s = state;
	struct gdsf_entry *x = cache_entry_data(entry);

	(void)object;
	x->uses = 1;
	policy_heap_add(&s->heap, entry, value_of(s, entry));
}

static void gdsf_hit(void *state, struct cache_entry *entry,
		     const struct cache_object *object)
{
	struct gdsf *s = state;
	struct gdsf_entry *x = cache_entry_data(entry);

	(void)object;
	x->uses += x->uses < UINT32_MAX;
	policy_heap_change(&s->heap, entry, value_of(s, entry));
}

static void gdsf_removed(void *state, struct cache_entry *entry)
{
	struct gdsf *s = state;

	policy_heap_remove(&s->heap, entry);
}

static struct cache_entry *gdsf_victim(void *state)
{
	struct gdsf *s = state;

	s->age = policy_heap_least(&s->heap)->priority;
	return policy_heap_least(&s->heap)->entry;
}

const struct policy_ops policy_gdsf = {
	.plugin = { .name = "gdsf",
		    .summary = "evict large, rarely used objects, with ageing",
		    .state_size = sizeof(struct gdsf) },
	.entry_size = sizeof(struct gdsf_entry),
	.overhead_bytes = 2 * sizeof(struct policy_heap_item),
	.fini = gdsf_fini,
	.admit = gdsf_admit,
	.inserted = gdsf_inserted,
	.hit = gdsf_hit,
	.removed = gdsf_removed,
	.victim = gdsf_victim,
};
