/* SPDX-License-Identifier: MIT */
/*
 * Keep the most important samples (SHADE: Khan et al., "SHADE: Enable
 * Fundamental Cacheability for Distributed Deep Learning Training", FAST 2023):
 * the victim is the least important object, and an object that is not more
 * important than it is not admitted. Important samples are drawn more often, so
 * that the hits are more than the cached share. Only this rule is here: who
 * scores the samples, and draws by the scores, is the loader.
 *
 * Among equals the one that was scored first is the victim, and none makes room
 * for another: without any importance this is MinIO. Objects count alike,
 * whatever their size: a large one may also displace some that are more
 * important.
 */
#include "fs/cache/policy/policy_heap.h"

struct shade {
	struct policy_heap heap; /* by importance */
	double (*importance)(const void *ctx, uint64_t key);
	const void *ctx;
};

static int shade_init(void *state, const struct policy_params *params,
		      struct err *err)
{
	struct shade *s = state;

	s->importance = params->importance;
	s->ctx = params->importance_ctx;
	return policy_heap_init(&s->heap, params, err);
}

static double importance_of(const struct shade *s, uint64_t key)
{
	return s->importance ? s->importance(s->ctx, key) : 0;
}

static bool shade_admit(void *state, const struct cache_object *object,
			struct cache_entry *ghost)
{
	struct shade *s = state;

	(void)ghost;
	return policy_heap_admit(&s->heap, object,
				 importance_of(s, object->key));
}

static void shade_inserted(void *state, struct cache_entry *entry,
			   const struct cache_object *object)
{
	struct shade *s = state;

	(void)object;
	policy_heap_add(&s->heap, entry, importance_of(s, entry->key));
}

static void shade_reweighed(void *state, struct cache_entry *entry)
{
	struct shade *s = state;

	policy_heap_change(&s->heap, entry, importance_of(s, entry->key));
}

const struct policy_ops policy_shade = {
	.plugin = { .name = "shade",
		    .summary = "keep the most important samples, by the "
			       "loader's scores (SHADE)",
		    .state_size = sizeof(struct shade) },
	.entry_size = sizeof(struct policy_heap_place),
	.overhead_bytes = 2 * sizeof(struct policy_heap_item),
	.init = shade_init,
	.fini = policy_heap_fini,
	.admit = shade_admit,
	.inserted = shade_inserted,
	.reweighed = shade_reweighed,
	.removed = policy_heap_removed,
	.victim = policy_heap_victim,
};
