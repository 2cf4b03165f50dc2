/* SPDX-License-Identifier: MIT */
/*
 * Batches that several jobs make for each other (loader/staging/staging.h),
 * between the flow of this job and its consumer:
 *
 *	area --claim--> flow --> workers --> flow --publish--> area
 *	area --take--> pin or consumer --use--> area
 *
 * Two threads: one claims batches, and the workers make them; one copies
 * completed batches into the area. The consumer takes all batches of the epoch
 * from there, in order, whoever made them.
 */
#ifndef GPEMU_LOADER_PIPELINE_STAGED_H
#define GPEMU_LOADER_PIPELINE_STAGED_H

#include "loader/pipeline/flow.h"
#include "loader/pipeline/worker.h"
#include "loader/staging/staging.h"

struct staged_config {
	struct staging *area; /* has begun */
	struct flow *flow;    /* with superbatch 1 */
	struct tick *tick;
	const struct dataset *data;
	uint32_t batch;
	uint64_t per_epoch;  /* batches */
	uint32_t most;	     /* batches made at once: the flow's windows */
	uint32_t workers;    /* owners of batches */
	bool virtual;	     /* as workers_virtual */
	size_t sample_bytes; /* of a transformed sample; 0: as read */
};

struct staged;

int staged_new(const struct staged_config *c, struct staged **ret,
	       struct err *err);
/* The flow must have been stopped. Joins the threads; unfinished batches are
 * for the other jobs. NULL is allowed. */
void staged_free(struct staged *s);

/* Bytes that a batch of `n` samples of `bytes` altogether takes in the area. */
uint64_t staged_bytes(uint64_t n, uint64_t bytes);

/* `state` is a struct staged. If the area is damaged, `next` also stops the
 * flow. */
extern const struct supply_ops supply_staged;

#endif
