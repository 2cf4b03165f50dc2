/* SPDX-License-Identifier: MIT */
/*
 * CLOCK (Corbato, "A paging experiment with the Multics system", 1968): first
 * in, first out, but an entry used since the hand last passed gets another
 * round. The ring is a queue here, with its tail under the hand; to pass an
 * entry is to move it to the head.
 */
#include "fs/cache/policy/policy_list.h"

static void clock_inserted(void *state, struct cache_entry *entry,
			   const struct cache_object *object)
{
	(void)object;
	policy_list_push(state, entry);
}

static void clock_hit(void *state, struct cache_entry *entry, uint64_t next_use)
{
	(void)state;
	(void)next_use;
	entry->uses = 1;
}

static void clock_removed(void *state, struct cache_entry *entry)
{
	policy_list_remove(state, entry);
}

static struct cache_entry *clock_victim(void *state)
{
	struct policy_list *ring = state;

	for (;;) {
		struct cache_entry *e = ring->tail;

		if (!e->uses)
			return e;
		e->uses = 0;
		policy_list_move(ring, ring, e);
	}
}

const struct policy_ops policy_clock = {
	.plugin = { .name = "clock",
		    .summary =
			    "first in, first out, with a second chance if used",
		    .state_size = sizeof(struct policy_list) },
	.entry_size = sizeof(struct policy_link),
	.inserted = clock_inserted,
	.hit = clock_hit,
	.removed = clock_removed,
	.victim = clock_victim,
};
