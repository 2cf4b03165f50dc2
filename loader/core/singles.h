/* SPDX-License-Identifier: MIT */
/*
 * Batches of samples that are ready, between windows of one sample each, which
 * leave on completion, and the consumer: the batching
 * (loader/batching/batching.h) says which of them make a batch. A batch is
 * complete when the last of its samples is; the clocks are those of that
 * sample. Its samples stay in their windows until it is released, so what is in
 * flight, and its memory, are bounded as for whole windows.
 *
 * Pure. A part of windows.h.
 */
#ifndef GPEMU_LOADER_CORE_SINGLES_H
#define GPEMU_LOADER_CORE_SINGLES_H

#include "loader/batching/batching.h"
#include "loader/core/batch.h"

struct singles_config {
	const struct batching_ops *batching; /* has `add`; NULL: unused */
	const void *options;
	uint32_t batch; /* samples of a batch */
};

struct singles {
	struct singles_config c;
	void *state;	    /* the batching's */
	struct batch *made; /* n_made: batches of the consumer */
	uint32_t n_made;
	struct batch *unused; /* by `next` */
	uint64_t n_ready;     /* samples added and not taken */
};

/* `in_flight`: windows, of two batches or more. -ENOMEM. singles_fini, failed
 * or not. */
int singles_init(struct singles *s, const struct singles_config *c,
		 uint32_t in_flight);
void singles_fini(struct singles *s);

/* An epoch of `n` samples; those of the epoch before were taken. */
void singles_begin(struct singles *s, uint64_t n);
/* A batch of one sample is complete. */
void singles_add(struct singles *s, struct batch *single);
/* Batches that singles_next would return. */
uint32_t singles_n_complete(const struct singles *s);
/* NULL: there is none now. Its samples go back to the windows, then it goes
 * back to singles_release; in any order. No more than n_made are out, so a
 * consumer must not keep the incomplete last ones of several epochs. */
struct batch *singles_next(struct singles *s);
void singles_release(struct singles *s, struct batch *b);

#endif
