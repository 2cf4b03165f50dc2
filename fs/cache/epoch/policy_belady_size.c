/* SPDX-License-Identifier: MIT */
/*
 * The offline heuristic for objects of many sizes: evict the object with the
 * largest product of bytes and requests until its next use (the space-time
 * product of Denning, "The working set model for program behavior", CACM 1968;
 * cache simulators call it Belady-Size). The true optimum is NP-hard for many
 * sizes (Chrobak et al., "Caching is hard - even in the fault model",
 * Algorithmica 2012).
 *
 * The products of all entries change with every request, at different rates, so
 * the victim is the worst of a sample. An object that is worse than that victim
 * is not admitted.
 */
#include <errno.h>

#include "common/conf/conf.h"
#include "common/rng.h"
#include "fs/cache/policy/policy_array.h"

struct belady_size_options {
	uint64_t sample;
};

static const struct conf_field belady_size_fields[] = {
	{ CONF_KEY(sample, CONF_UINT, struct belady_size_options), .min = 1,
	  .max = 1 << 20, .arg = "N",
	  .help = "entries examined for each victim" },
	{ 0 },
};

/* With n the victim is on average among the worst 1/(n + 1) of all.
 * arbitrary: 64 gives the worst 1.5 % */
static const struct belady_size_options belady_size_defaults = { .sample = 64 };

struct belady_size {
	struct policy_array array;
	struct rng rng;
	uint64_t capacity, used;
	uint64_t overhead; /* of the last entry, beyond its object's bytes */
	uint64_t now;	   /* requests so far */
	uint32_t sample;
	struct cache_entry *candidate; /* found by admit, for victim */
};

struct belady_size_entry {
	uint32_t place;
	uint64_t next_use;
};

static int belady_size_init(void *state, const struct policy_params *params,
			    struct err *err)
{
	const struct belady_size_options *o =
		params->options ? params->options : &belady_size_defaults;
	struct belady_size *s = state;

	(void)err;
	s->sample = (uint32_t)o->sample;
	s->rng = rng_stream(params->seed, "cache.belady_size", 0);
	s->capacity = params->capacity_bytes;
	return 0;
}

static void belady_size_fini(void *state)
{
	struct belady_size *s = state;

	free(s->array.v);
}

static double space_time(const struct belady_size *s, uint64_t next_use,
			 uint64_t bytes)
{
	if (next_use == POLICY_NEVER)
		return (double)UINT64_MAX * (double)UINT64_MAX;
	return ((double)next_use - (double)s->now) * (double)bytes;
}

static double space_time_of(const struct belady_size *s, struct cache_entry *e)
{
	const struct belady_size_entry *x = cache_entry_data(e);

	return space_time(s, x->next_use, e->bytes);
}

static struct cache_entry *worst(struct belady_size *s)
{
	bool all = s->array.n <= s->sample;
	struct cache_entry *ret = s->array.v[0];

	for (uint32_t i = 0; i < MIN(s->array.n, s->sample); i++) {
		uint64_t at = all ? i : rng_below(&s->rng, s->array.n);
		struct cache_entry *e = s->array.v[at];

		if (space_time_of(s, e) > space_time_of(s, ret))
			ret = e;
	}
	return ret;
}

static bool belady_size_admit(void *state, const struct cache_object *object,
			      struct cache_entry *ghost)
{
	struct belady_size *s = state;
	uint64_t bytes = object->bytes + s->overhead;

	(void)ghost;
	s->now++;
	s->candidate = NULL;
	if (object->next_use == POLICY_NEVER || bytes > s->capacity ||
	    !policy_array_reserve(&s->array))
		return false;
	if (s->used + bytes <= s->capacity)
		return true;
	s->candidate = worst(s);
	return space_time(s, object->next_use, bytes) <
	       space_time_of(s, s->candidate);
}

static void belady_size_inserted(void *state, struct cache_entry *entry,
				 const struct cache_object *object)
{
	struct belady_size *s = state;
	struct belady_size_entry *x = cache_entry_data(entry);

	x->next_use = object->next_use;
	s->used += entry->bytes;
	s->overhead = entry->bytes - object->bytes;
	policy_array_add(&s->array, entry);
}

static void belady_size_hit(void *state, struct cache_entry *entry,
			    uint64_t next_use)
{
	struct belady_size *s = state;
	struct belady_size_entry *x = cache_entry_data(entry);

	s->now++;
	x->next_use = next_use;
}

static void belady_size_removed(void *state, struct cache_entry *entry)
{
	struct belady_size *s = state;

	if (s->candidate == entry)
		s->candidate = NULL;
	s->used -= entry->bytes;
	policy_array_remove(&s->array, entry);
}

static struct cache_entry *belady_size_victim(void *state)
{
	struct belady_size *s = state;

	return s->candidate ? s->candidate : worst(s);
}

const struct policy_ops policy_belady_size = {
	.plugin = { .name = "belady_size",
		    .summary = "Belady by bytes x time (gpemu-cachesim only)",
		    .state_size = sizeof(struct belady_size),
		    PLUGIN_OPTIONS(belady_size_fields, belady_size_defaults) },
	.entry_size = sizeof(struct belady_size_entry),
	.overhead_bytes = 2 * sizeof(struct cache_entry *),
	.offline = true,
	.init = belady_size_init,
	.fini = belady_size_fini,
	.admit = belady_size_admit,
	.inserted = belady_size_inserted,
	.hit = belady_size_hit,
	.removed = belady_size_removed,
	.victim = belady_size_victim,
};
