/* SPDX-License-Identifier: MIT */
/* Least recently used: a hit moves the entry to the head of the queue. */
#include "fs/cache/policy/policy_list.h"

static void lru_inserted(void *state, struct cache_entry *entry,
			 const struct cache_object *object)
{
	(void)object;
	policy_list_push(state, entry);
}

static void lru_hit(void *state, struct cache_entry *entry, uint64_t next_use)
{
	(void)next_use;
	policy_list_move(state, state, entry);
}

static void lru_removed(void *state, struct cache_entry *entry)
{
	policy_list_remove(state, entry);
}

static struct cache_entry *lru_victim(void *state)
{
	struct policy_list *queue = state;

	return queue->tail;
}

const struct policy_ops policy_lru = {
	.plugin = { .name = "lru",
		    .summary = "evict the least recently used object",
		    .state_size = sizeof(struct policy_list) },
	.entry_size = sizeof(struct policy_link),
	.inserted = lru_inserted,
	.hit = lru_hit,
	.removed = lru_removed,
	.victim = lru_victim,
};
