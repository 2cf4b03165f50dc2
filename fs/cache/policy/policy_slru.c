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
	{ "protected", CONF_DOUBLE, offsetof(struct slru_options, protected),
	  .max = 1, .arg = "0..1",
	  .help = "share of the capacity for the protected segment" },
	{ 0 },
};

/* Source: Einziger, Friedman and Manes, "TinyLFU", ACM Transactions on Storage
 * 13(4), 2017, section 4 (main cache: SLRU with 80 % protected). */
static const struct slru_options slru_defaults = { .protected = 0.8 };

struct slru {
	struct policy_list probation, protected;
	uint64_t protected_bytes;
};

struct slru_entry {
	struct policy_link link;
	bool protected;
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

static void slru_inserted(void *state, struct cache_entry *entry,
			  const struct cache_object *object)
{
	struct slru *s = state;

	(void)object;
	policy_list_push(&s->probation, entry);
}

static void slru_hit(void *state, struct cache_entry *entry,
		     const struct cache_object *object)
{
	struct slru *s = state;
	struct slru_entry *x = cache_entry_data(entry);

	(void)object;
	policy_list_move(x->protected ? &s->protected : &s->probation,
			 &s->protected, entry);
	x->protected = true;
	while (s->protected.bytes > s->protected_bytes) {
		struct cache_entry *e = policy_list_tail(&s->protected);

		x = cache_entry_data(e);
		x->protected = false;
		policy_list_move(&s->protected, &s->probation, e);
	}
}

static void slru_removed(void *state, struct cache_entry *entry)
{
	struct slru *s = state;
	struct slru_entry *x = cache_entry_data(entry);

	policy_list_remove(x->protected ? &s->protected : &s->probation, entry);
}

static struct cache_entry *slru_victim(void *state)
{
	struct slru *s = state;

	return policy_list_tail(s->probation.head ? &s->probation
						  : &s->protected);
}

const struct policy_ops policy_slru = {
	.plugin = { .name = "slru",
		    .summary = "LRU in two segments; a hit moves to the "
			       "protected one",
		    .state_size = sizeof(struct slru),
		    .options = slru_fields,
		    .defaults = &slru_defaults,
		    .options_size = sizeof(slru_defaults) },
	.entry_size = sizeof(struct slru_entry),
	.init = slru_init,
	.inserted = slru_inserted,
	.hit = slru_hit,
	.removed = slru_removed,
	.victim = slru_victim,
};
