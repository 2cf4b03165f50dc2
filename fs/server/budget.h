/* SPDX-License-Identifier: MIT */
/*
 * How many bytes of files a mount holds in memory at most, the cache's and
 * others: those in flight, of files being read, of groups that were brought.
 *
 * The bound is on memory alone. What the emulated device reads, when it is
 * done and what is a hit does not depend on it: an object for which there is
 * no room is brought, cached and paid for without its bytes, and whoever reads
 * it has them read from the source once more, which costs no emulated time.
 *
 *	objects	the capacity of the cache and half of what is beside it;
 *		beyond, an object has no bytes
 *	answers	the other half: bytes that no object has, until they are
 *		sent; beyond, reads wait in their order, but one always goes on
 *
 * An answer needs nothing but its own bytes to go on, so a wait for it ends.
 * Fields are atomic unless it says otherwise; any thread.
 */
#ifndef GPEMU_FS_SERVER_BUDGET_H
#define GPEMU_FS_SERVER_BUDGET_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Embedded in what waits for memory of an answer. */
struct budget_wait {
	size_t bytes;
	bool has; /* the memory, to be given back */
	struct budget_wait *next;
};

struct budget {
	uint64_t beside;	   /* constant: what the cache does not count */
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
/* All that the two bounds allow. */
uint64_t budget_limit(const struct budget *b);

/* Bytes of an object; false: no room. */
bool budget_take(struct budget *b, size_t bytes);
void budget_give(struct budget *b, size_t bytes);
/* How much is missing for so many bytes. */
uint64_t budget_lacks(const struct budget *b, size_t bytes);

/* Memory for an answer of w->bytes. Returns those that go on now, linked by
 * next: `w` alone, or it waits, and there may be others. */
struct budget_wait *budget_answer(struct budget *b, struct budget_wait *w);
/* Gives back what `w` has; those that go on now. */
struct budget_wait *budget_answered(struct budget *b, struct budget_wait *w);
/* Nobody waits any more; those that did, and have no memory. */
struct budget_wait *budget_stop(struct budget *b);

#endif
