/* SPDX-License-Identifier: MIT */
/*
 * Ghosts: the keys of evicted objects, in queues by age, for policies that
 * learn from their evictions. All memory is allocated at init: a fixed number
 * of ghosts, shared by the queues of one policy. When none is free, a push
 * drops the oldest ghost of its own queue.
 */
#ifndef GPEMU_FS_CACHE_POLICY_POLICY_GHOST_H
#define GPEMU_FS_CACHE_POLICY_POLICY_GHOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GHOST_QUEUES = 2 };

/* Memory per ghost, with its part of the hash table. */
enum { GHOST_BYTES = 48 };

struct ghost {
	uint64_t key;
	uint64_t bytes;	     /* the object's share of the capacity */
	uint64_t value;	     /* the policy's */
	uint32_t prev, next; /* older is prev; 0: none */
	uint32_t chain;	     /* in the hash table or the free list */
	uint32_t queue;	     /* the queue it is in */
};

struct ghost_queue {
	uint32_t newest, oldest;
	uint32_t n;
	uint64_t bytes;
};

struct ghosts {
	struct ghost *v; /* from 1; 0 is "none" */
	uint32_t *table;
	uint32_t mask;
	uint32_t n, n_used, free;
	struct ghost_queue queue[GHOST_QUEUES];
};

/* Room for `n` ghosts in all, n > 0. -ENOMEM. */
int ghosts_init(struct ghosts *g, size_t n);
void ghosts_fini(struct ghosts *g);

/* NULL: not a ghost. */
struct ghost *ghosts_find(const struct ghosts *g, uint64_t key);
/* Push `key`, which is not a ghost yet, as the newest of a queue. */
void ghosts_push(struct ghosts *g, int queue, uint64_t key, uint64_t bytes,
		 uint64_t value);
void ghosts_remove(struct ghosts *g, struct ghost *ghost);
/* NULL when the queue is empty. */
struct ghost *ghosts_oldest(const struct ghosts *g, int queue);
/* Drop the oldest of a queue until its bytes are at most `bytes`. */
void ghosts_trim(struct ghosts *g, int queue, uint64_t bytes);

#endif
