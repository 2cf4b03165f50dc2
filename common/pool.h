/* SPDX-License-Identifier: MIT */
/*
 * Work on numbered items by several threads, with results taken in order.
 *
 *	threads: init, work i, work j, ..., fini	any items, in parallel
 *	         take 0, take 1, ...			in order, one at a time
 *
 * The items are known before. Where they come one by one, and there is no last
 * one, threads wait for them in a queue of their own: the readers of a mount
 * (fs/device/fetch.c), whose queue timing threads enter, under a lock that
 * lends them priority; those of --loader threads
 * (loader/engine/engine_threads.c), which answer to the one thread that asked;
 * the workers of a pipeline, whose batches go in turns.
 */
#ifndef GPEMU_COMMON_POOL_H
#define GPEMU_COMMON_POOL_H

#include <stddef.h>

#include "common/err.h"

struct pool {
	size_t n; /* items */
	unsigned threads;
	void *ctx;
	/* What a thread has for itself, zeroed. 0: `state` is NULL. */
	size_t state_bytes;
	/* Before a thread's first item, and after its last or a failed init.
	 * NULL: nothing to do. */
	int (*init)(void *ctx, void *state, struct err *err);
	void (*fini)(void *ctx, void *state);
	/* Item `i`, on any thread, begun in the order of their numbers. 0 or
	 * -errno with a text. */
	int (*work)(void *ctx, void *state, size_t i, struct err *err);
	/* After its work: item 0, 1, ..., one at a time. NULL: nothing to do.
	 */
	int (*take)(void *ctx, size_t i, struct err *err);
	/* So many have been worked on; one call at a time, other threads wait
	 * when they have done their item. NULL: nobody asks. */
	void (*progress)(void *ctx, size_t n_done);
	/* Atomic: a -errno that somebody writes there, from any thread, is the
	 * end: no further item begins. NULL: nobody. */
	const int *cancel;
};

/*
 * Do all items; returns when no thread works any more. The calling thread is
 * one of them, and the only one where no other can be started.
 *
 * The error of the first item that failed, by number: the same however the
 * threads ran. Items behind it may not have been worked on, and are not taken.
 * What `cancel` says, unless all were done; -ENOMEM.
 */
int pool_run(const struct pool *p, struct err *err);

#endif
