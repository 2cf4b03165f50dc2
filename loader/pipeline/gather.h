/* SPDX-License-Identifier: MIT */
/*
 * Batches of samples that are ready (loader/core/singles.h), between a flow of
 * single samples and the consumer:
 *
 *	flow (windows of one sample) --next--> singles --next--> pin or consumer
 *
 * One thread calls gather_next, any thread the rest.
 */
#ifndef GPEMU_LOADER_PIPELINE_GATHER_H
#define GPEMU_LOADER_PIPELINE_GATHER_H

#include "loader/core/singles.h"
#include "loader/pipeline/flow.h"

struct gather;

/* The flow has batch 1, superbatch 1, any_order. -ENOMEM. */
int gather_new(struct flow *flow, const struct singles_config *c,
	       struct gather **ret, struct err *err);
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
