/* SPDX-License-Identifier: MIT */
/*
 * Ephemeral sharing: several trainers read one sweep over a dataset through a
 * sliding window of elements, bounded in bytes, so that each element is made
 * once for all of them.
 *
 *	elements  0 ... start-1 | start ... end-1 | end ...
 *	          dropped       | in the window   | not made yet
 *	                 slow ->|      readers    |<- fast
 *
 * The fastest reader advances the window: the one that is at its end makes the
 * next element, and the oldest are dropped until it fits. A reader that falls
 * behind the window skips what was dropped. A reader that joins late begins
 * with the oldest element in the window. So a reader sees an element at most
 * once, all elements if it is never slower than the window is long, and nobody
 * waits for a slow one.
 *
 * Source: tf.data service, tensorflow/core/data/service/cross_trainer_cache.h;
 * Audibert et al., SoCC 2023.
 *
 * Pure bookkeeping: no lock (the caller's), no clock, no I/O. An element is a
 * pointer of the caller, who keeps what a reader still uses.
 */
#ifndef GPEMU_SERVICE_DECIDE_SWEEP_H
#define GPEMU_SERVICE_DECIDE_SWEEP_H

#include <stddef.h>
#include <stdint.h>

struct sweep;

/* The element has left the window. */
typedef void (*sweep_drop_fn)(void *element, void *ctx);

/* A window of `limit_bytes`, at least 1. -ENOMEM. */
int sweep_new(uint64_t limit_bytes, sweep_drop_fn drop, void *ctx,
	      struct sweep **ret);
/* Drops all elements. NULL is allowed. */
void sweep_free(struct sweep *s);

/* The place of a reader; a zeroed struct has read nothing. */
struct sweep_reader {
	uint64_t next; /* index of an element, from the start of the sweep */
	uint64_t n_read, n_skipped;
};

/*
 * The next element for a reader. -EAGAIN: there is none now: the reader makes
 * one, for sweep_extend.
 */
int sweep_next(struct sweep *s, struct sweep_reader *r, void **ret);

/*
 * The next element. An element counts as one byte at least, so that the number
 * of elements is bounded, too. -EFBIG: larger than the window; -ENOMEM: the
 * element is not taken.
 */
int sweep_extend(struct sweep *s, void *element, uint64_t bytes);

/* Elements made so far. */
uint64_t sweep_made(const struct sweep *s);

#endif
