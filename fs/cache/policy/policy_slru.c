/* SPDX-License-Identifier: MIT */
/*
 * Segmented LRU (Karedla, Love and Wherry, "Caching strategies to improve disk
 * system performance", IEEE Computer, 1994): new objects enter probation; a hit
 * moves them to the protected segment. Overflow of the protected segment
 * returns to the head of probation. The victim is the tail of probation.
 */
#include "common/conf/conf.h"
#include "fs/cache/policy/policy_list.h"

struct slru_options {
	double protected;
};

static const struct conf_field slru_fields[] = {
	{ CONF_KEY(protected, CONF_DOUBLE, struct slru_options), .max = 1,
	  .arg = "0..1",
	  .help = "share of the capacity for the protected segment" },
	{ 0 },
};

/* Source: Einziger, Friedman and Manes, "TinyLFU", ACM Transactions on Storage
 * 13(4), 2017, section 4 (main cache: SLRU with 80 % protected). */
static const struct slru_options slru_defaults = { .protected = 0.8 };

enum { PROBATION, PROTECTED, N_SEGMENTS };

struct slru {
	struct policy_list segment[N_SEGMENTS];
	uint64_t protected_bytes;
};

static int slru_init(void *state, const struct policy_params *params,
		     struct err *err)
{
	const struct slru_options *o = params->options ? params->options
						       : &slru_defaults;
	struct slru *s = state;

	(void)err;
	s->protected_bytes =
		(uint64_t)(o->protected * (double)params->capacity_bytes);
	return 0;
}

static void move(struct slru *s, struct cache_entry *e, unsigned to)
{
	policy_list_move(&s->segment[e->queue], &s->segment[to], e);
	e->queue = to;
}

static void slru_inserted(void *state, struct cache_entry *entry,
			  const struct cache_object *object)
{
	struct slru *s = state;

	(void)object;
	policy_list_push(&s->segment[PROBATION], entry);
}

static void slru_hit(void *state, struct cache_entry *entry, uint64_t next_use)
{
	struct slru *s = state;

	(void)next_use;
	move(s, entry, PROTECTED);
	while (s->segment[PROTECTED].bytes > s->protected_bytes)
		move(s, s->segment[PROTECTED].tail, PROBATION);
}

static void slru_removed(void *state, struct cache_entry *entry)
{
	struct slru *s = state;

	policy_list_remove(&s->segment[entry->queue], entry);
}

static struct cache_entry *slru_victim(void *state)
{
	const struct slru *s = state;
	struct cache_entry *tail = s->segment[PROBATION].tail;

	return tail ? tail : s->segment[PROTECTED].tail;
}

const struct policy_ops policy_slru = {
	.plugin = { .name = "slru",
		    .summary = "LRU in two segments; a hit moves to the "
			       "protected one",
		    .state_size = sizeof(struct slru),
		    PLUGIN_OPTIONS(slru_fields, slru_defaults) },
	.entry_size = sizeof(struct policy_link),
	.init = slru_init,
	.inserted = slru_inserted,
	.hit = slru_hit,
	.removed = slru_removed,
	.victim = slru_victim,
};
