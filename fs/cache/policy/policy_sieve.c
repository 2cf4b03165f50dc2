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
	struct cache_entry *hand;  /* NULL: the tail */
	struct policy_scout scout; /* before the hand */
};

static void sieve_inserted(void *state, struct cache_entry *entry,
			   const struct cache_object *object)
{
	struct sieve *s = state;

	(void)object;
	policy_list_push(&s->queue, entry);
}

static void sieve_hit(void *state, struct cache_entry *entry, uint64_t next_use)
{
	(void)state;
	(void)next_use;
	entry->uses = 1;
}

static void advance(struct sieve *s)
{
	s->hand = policy_list_newer(s->hand);
	policy_scout_follow(&s->scout, s->hand);
}

static void sieve_removed(void *state, struct cache_entry *entry)
{
	struct sieve *s = state;

	if (entry == s->scout.at)
		s->scout = (struct policy_scout){ 0 };
	if (entry == s->hand)
		advance(s);
	policy_list_remove(&s->queue, entry);
}

static struct cache_entry *sieve_victim(void *state)
{
	struct sieve *s = state;

	for (;;) {
		if (!s->hand)
			s->hand = s->queue.tail;
		if (!s->hand->uses)
			return s->hand; /* removed() moves the hand on */
		s->hand->uses = 0;
		advance(s);
	}
}

const struct policy_ops policy_sieve = {
	.plugin = { .name = "sieve",
		    .summary = "FIFO with a hand that evicts unused objects "
			       "(NSDI'24)",
		    .state_size = sizeof(struct sieve) },
	.entry_size = sizeof(struct policy_link),
	.inserted = sieve_inserted,
	.hit = sieve_hit,
	.removed = sieve_removed,
	.victim = sieve_victim,
};
