/* SPDX-License-Identifier: MIT */
/*
 * An example of a cache policy: most recently used leaves first. Who reads a
 * dataset in the same order each time needs last what he has just read.
 *
 * To try it: copy it to fs/cache/policy, and add 'mru' to the words in the
 * meson.build there. `gpemu-cachesim -p lru,mru --order sequential` compares.
 */
#include "fs/cache/policy/policy_list.h"

static void mru_inserted(void *state, struct cache_entry *entry,
			 const struct cache_object *object)
{
	(void)object;
	policy_list_push(state, entry);
}

static void mru_hit(void *state, struct cache_entry *entry, uint64_t next_use)
{
	(void)next_use;
	policy_list_move(state, state, entry);
}

static void mru_removed(void *state, struct cache_entry *entry)
{
	policy_list_remove(state, entry);
}

static struct cache_entry *mru_victim(void *state)
{
	struct policy_list *queue = state;

	return queue->head;
}

const struct policy_ops policy_mru = {
	.plugin = { .name = "mru",
		    .summary = "evict the most recently used object",
		    .state_size = sizeof(struct policy_list) },
	.entry_size = sizeof(struct policy_link),
	.inserted = mru_inserted,
	.hit = mru_hit,
	.removed = mru_removed,
	.victim = mru_victim,
};
