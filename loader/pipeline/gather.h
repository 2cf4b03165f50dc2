/* SPDX-License-Identifier: MIT */
/*
 * Batches of samples that are ready, between a flow of single samples and the
 * consumer:
 *
 *	flow (windows of one sample) --next--> batching --take-->
 *	pin or consumer
 *
 * The flow has windows and batches of one sample each, which leave on
 * completion; the batching (loader/batching/batching.h) says which of them make
 * a batch. A batch is complete when the last of its samples is; the clocks are
 * those of that sample. Its samples stay in their windows until it is released,
 * so what is in flight, and its memory, are bounded as for whole windows.
 *
 * One thread calls gather_next, any thread the rest.
 */
#ifndef GPEMU_LOADER_PIPELINE_GATHER_H
#define GPEMU_LOADER_PIPELINE_GATHER_H

#include "loader/batching/batching.h"
#include "loader/pipeline/flow.h"

struct gather_config {
	struct flow *flow; /* batch 1, superbatch 1, any_order */
	const struct batching_ops *batching; /* has `add` */
	const void *options;
	uint32_t batch;	    /* samples of a batch */
	uint32_t in_flight; /* the flow's windows: two batches or more */
};

struct gather;

/* -ENOMEM. */
int gather_new(const struct gather_config *c, struct gather **ret,
	       struct err *err);
/* NULL is allowed. */
void gather_free(struct gather *g);

/* As flow_begin; the samples of the epoch before were taken. */
void gather_begin(struct gather *g, uint64_t epoch, const uint32_t *order,
		  uint64_t n);
/* As flow_next. */
int gather_next(struct gather *g, uint64_t deadline, struct batch **ret);
/* In any order. */
void gather_release(struct gather *g, struct batch *b);
/* Batches that gather_next would return at once. */
uint32_t gather_n_complete(struct gather *g);

#endif
