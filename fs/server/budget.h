/* SPDX-License-Identifier: MIT */
/*
 * The memory budget of a mount: how many bytes of files it may hold, in the
 * cache and elsewhere: in flight, in reads, in prefetched members of groups.
 *
 * The budget limits memory only. Device time, the order of completion and hits
 * do not depend on it. An object that finds no room is fetched, cached and
 * charged without its bytes. A reader of it reads the bytes from the source
 * again, which costs no emulated time.
 *
 *	objects	the capacity of the cache and half of `beside`; an object
 *		beyond that has no bytes
 *	answers	the other half: bytes outside any object, until they are
 *		sent; beyond it reads queue in order, but one always proceeds
 *
 * An answer waits for its own memory alone, so the wait always ends. Fields are
 * atomic unless noted otherwise; any thread may call.
 */
#ifndef GPEMU_FS_SERVER_BUDGET_H
#define GPEMU_FS_SERVER_BUDGET_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Embedded in a request that waits for memory for its answer. */
struct budget_wait {
	size_t bytes;
	bool has; /* the memory, and must give it back */
	struct budget_wait *next;
};

struct budget {
	uint64_t beside;	   /* constant: bytes outside the cache */
	uint64_t capacity;	   /* of the cache */
	uint64_t objects, answers; /* bytes in memory */
	pthread_mutex_t lock;
	unsigned n_waiting; /* changed under the lock */
	bool stopped;	    /* under the lock, as below */
	struct budget_wait *first, **end;
};

void budget_init(struct budget *b, uint64_t beside);
void budget_fini(struct budget *b);
void budget_set_capacity(struct budget *b, uint64_t bytes);
/* The sum of both bounds. */
uint64_t budget_limit(const struct budget *b);

/* Reserve bytes for an object; false: no room. */
bool budget_take(struct budget *b, size_t bytes);
void budget_give(struct budget *b, size_t bytes);
/* How many bytes a reservation of `bytes` lacks. */
uint64_t budget_lacks(const struct budget *b, size_t bytes);

/* Memory for an answer of w->bytes. Returns the waiters that may proceed now,
 * linked by next: `w` alone, or others, or none; `w` may have to wait. */
struct budget_wait *budget_answer(struct budget *b, struct budget_wait *w);
/* The same without waiting: false if others wait, or there is no room. */
bool budget_try_answer(struct budget *b, struct budget_wait *w);
/* Gives back the memory of `w`. Returns the waiters that may proceed now. */
struct budget_wait *budget_answered(struct budget *b, struct budget_wait *w);
/* Ends all waiting. Returns the waiters, which get no memory. */
struct budget_wait *budget_stop(struct budget *b);

#endif
