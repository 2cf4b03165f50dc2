/* SPDX-License-Identifier: MIT */
/*
 * Ghosts: evicted entries that a policy remembers, in queues by age. At most a
 * fixed number, shared by the queues of one policy: beyond it a push drops the
 * oldest ghost of its own queue.
 */
#ifndef GPEMU_FS_CACHE_POLICY_POLICY_GHOST_H
#define GPEMU_FS_CACHE_POLICY_POLICY_GHOST_H

#include "fs/cache/policy/policy_list.h"

enum { GHOST_QUEUES = 2 };

/* All zeros but `max`: empty. */
struct ghosts {
	struct policy_list queue[GHOST_QUEUES];
	struct policy_list dropped; /* until the cache forgets them */
	size_t n, max;
};

/* From `removed`: the entry, in no list any more, becomes the newest ghost of a
 * queue, and its `queue` that number. max > 0. */
void ghosts_push(struct ghosts *g, unsigned queue, struct cache_entry *e);
/* From `admit`: take out the ghost that ends. */
void ghosts_remove(struct ghosts *g, struct cache_entry *ghost);
/* Drop the oldest ghost of a queue that is not empty. */
void ghosts_drop(struct ghosts *g, unsigned queue);
/* Drop the oldest of a queue until its bytes are at most `bytes`. */
void ghosts_trim(struct ghosts *g, unsigned queue, uint64_t bytes);
/* For the hook `forget`. */
struct cache_entry *ghosts_forget(struct ghosts *g);

#endif
