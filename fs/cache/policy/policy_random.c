/* SPDX-License-Identifier: MIT */
/*
 * Random replacement (Belady, "A study of replacement algorithms for a
 * virtual-storage computer", IBM Systems Journal, 1966): all entries are
 * equally likely to be evicted. Under one random pass per epoch its hit ratio h
 * solves h = 1 - c ln(c + (1 - c) e^(1/c)) for a cached share c.
 */
#include <errno.h>

#include "common/rng.h"
#include "fs/cache/policy/policy_array.h"

struct random {
	struct policy_array array;
	struct rng rng;
};

static int random_init(void *state, const struct policy_params *params,
		       struct err *err)
{
	struct random *s = state;

	(void)err;
	s->rng = rng_stream(params->seed, "cache.random", 0);
	return 0;
}

static void random_fini(void *state)
{
	struct random *s = state;

	free(s->array.v);
}

static bool random_admit(void *state, const struct cache_object *object,
			 struct cache_entry *ghost)
{
	struct random *s = state;

	(void)object;
	(void)ghost;
	return policy_array_reserve(&s->array);
}

static void random_inserted(void *state, struct cache_entry *entry,
			    const struct cache_object *object)
{
	struct random *s = state;

	(void)object;
	policy_array_add(&s->array, entry);
}

static void random_removed(void *state, struct cache_entry *entry)
{
	struct random *s = state;

	policy_array_remove(&s->array, entry);
}

static struct cache_entry *random_victim(void *state)
{
	struct random *s = state;

	return s->array.v[rng_below(&s->rng, s->array.n)];
}

const struct policy_ops policy_random = {
	.plugin = { .name = "random",
		    .summary = "evict a random object",
		    .state_size = sizeof(struct random) },
	.entry_size = sizeof(uint32_t),
	.overhead_bytes = 2 * sizeof(struct cache_entry *),
	.init = random_init,
	.fini = random_fini,
	.admit = random_admit,
	.inserted = random_inserted,
	.removed = random_removed,
	.victim = random_victim,
};
