/* SPDX-License-Identifier: MIT */
/* First in, first out: hits change nothing. */
#include "fs/cache/policy/policy_list.h"

static void fifo_inserted(void *state, struct cache_entry *entry,
			  const struct cache_object *object)
{
	(void)object;
	policy_list_push(state, entry);
}

static void fifo_removed(void *state, struct cache_entry *entry)
{
	policy_list_remove(state, entry);
}

static struct cache_entry *fifo_victim(void *state)
{
	struct policy_list *queue = state;

	return queue->tail;
}

const struct policy_ops policy_fifo = {
	.plugin = { .name = "fifo",
		    .summary = "evict the oldest object",
		    .state_size = sizeof(struct policy_list) },
	.entry_size = sizeof(struct policy_link),
	.inserted = fifo_inserted,
	.removed = fifo_removed,
	.victim = fifo_victim,
};
