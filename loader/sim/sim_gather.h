/* SPDX-License-Identifier: MIT */
/*
 * Batches of ready samples, as loader/pipeline/gather.h makes them, on the
 * event clock: the loader of a node adds each sample that is complete, and the
 * consumer takes batches.
 */
#ifndef GPEMU_LOADER_SIM_SIM_GATHER_H
#define GPEMU_LOADER_SIM_SIM_GATHER_H

#include "loader/pipeline/pipeline.h"

struct sim_batch;
struct sim_gather;

/* For `in_flight` samples at most. -ENOMEM. */
int sim_gather_new(const struct pipeline_config *c, uint32_t in_flight,
		   struct sim_gather **ret);
/* NULL is allowed. */
void sim_gather_free(struct sim_gather *g);

/* An epoch of `n` samples. */
void sim_gather_begin(struct sim_gather *g, uint64_t n);
/* A batch of one sample is complete. */
void sim_gather_add(struct sim_gather *g, struct sim_batch *single);
/* NULL: there is no batch now. */
struct sim_batch *sim_gather_next(struct sim_gather *g);
/* Batches that are there. */
uint32_t sim_gather_n_complete(const struct sim_gather *g);

/* The number of a batch, and how to release it: calls `give` for each of its
 * samples. */
uint32_t sim_gather_index(const struct sim_gather *g,
			  const struct sim_batch *b);
void sim_gather_release(struct sim_gather *g, uint32_t index,
			void (*give)(struct sim_batch *single, void *ctx),
			void *ctx);

#endif
