/* SPDX-License-Identifier: MIT */
/*
 * Segmented LRU (Karedla, Love and Wherry, "Caching strategies to improve disk
 * system performance", IEEE Computer, 1994): objects come in on probation; a
 * hit moves them to the protected segment. What overflows that goes back to
 * the head of probation, whose tail is the victim.
 */
#include "fs/cache/policy/policy_list.h"

/* Protected share of the capacity. Source: Einziger, Friedman and Manes,
 * "TinyLFU", ACM Transactions on Storage 13(4), 2017, section 4 (main cache:
 * SLRU with 80 % protected). */
#define PROTECTED_SHARE 0.8

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
	struct slru *s = state;

	(void)err;
	s->protected_bytes =
		(uint64_t)(PROTECTED_SHARE * (double)params->capacity_bytes);
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
		    .summary = "LRU in two segments, used ones protected",
		    .state_size = sizeof(struct slru) },
	.entry_size = sizeof(struct slru_entry),
	.init = slru_init,
	.inserted = slru_inserted,
	.hit = slru_hit,
	.removed = slru_removed,
	.victim = slru_victim,
};
