/* SPDX-License-Identifier: MIT */
/*
 * SIEVE (Zhang et al., "SIEVE is simpler than LRU: an efficient turn-key
 * eviction algorithm for web caches", NSDI 2024, algorithm 1). Like CLOCK a
 * queue with a mark for used entries, but the hand moves and the entries stay.
 * A spared entry keeps its place among the old and used ones, while the hand
 * soon reaches new entries.
 */
#include "fs/cache/policy/policy_list.h"

struct sieve {
	struct policy_list queue;
	struct cache_entry *hand; /* NULL: the tail */
};

struct sieve_entry {
	struct policy_link link;
	bool visited;
};

static void sieve_inserted(void *state, struct cache_entry *entry,
			   const struct cache_object *object)
{
	struct sieve *s = state;

	(void)object;
	policy_list_push(&s->queue, entry);
}

static void sieve_hit(void *state, struct cache_entry *entry,
		      const struct cache_object *object)
{
	struct sieve_entry *x = cache_entry_data(entry);

	(void)state;
	(void)object;
	x->visited = true;
}

static void sieve_removed(void *state, struct cache_entry *entry)
{
	struct sieve *s = state;

	if (entry == s->hand)
		s->hand = policy_list_newer(&s->queue, entry);
	policy_list_remove(&s->queue, entry);
}

static struct cache_entry *sieve_victim(void *state)
{
	struct sieve *s = state;

	for (;;) {
		struct sieve_entry *x;

		if (!s->hand)
			s->hand = policy_list_tail(&s->queue);
		x = cache_entry_data(s->hand);
		if (!x->visited)
			return s->hand; /* removed() moves the hand on */
		x->visited = false;
		s->hand = policy_list_newer(&s->queue, s->hand);
	}
}

const struct policy_ops policy_sieve = {
	.plugin = { .name = "sieve",
		    .summary = "FIFO with a hand that evicts unused objects "
			       "(NSDI'24)",
		    .state_size = sizeof(struct sieve) },
	.entry_size = sizeof(struct sieve_entry),
	.inserted = sieve_inserted,
	.hit = sieve_hit,
	.removed = sieve_removed,
	.victim = sieve_victim,
};
