/* SPDX-License-Identifier: MIT */
/* Batches that other processes make (loader/engine/remote.h): memory for them,
 * and their delivery. There are no workers and no pin stage. */
#ifndef GPEMU_LOADER_PIPELINE_RECEIVED_H
#define GPEMU_LOADER_PIPELINE_RECEIVED_H

#include "loader/engine/engine.h"
#include "loader/engine/remote.h"
#include "loader/prep/prep.h"
#include "loader/pipeline/delivery.h"
#include "loader/pipeline/worker.h"

struct received_config {
	const struct engine_ops *engine; /* with `remote` */
	const void *engine_options;
	const struct remote_service *service; /* borrowed, as are the next */
	const struct dataset *data;
	struct tick *tick;
	uint32_t batch, gpus;
	/* The last of the transforms runs here, in so many threads (finish.h);
	 * 0: not. The other three only then. */
	uint32_t threads;
	const struct prep_ops *prep;
	const struct prep_config *prep_config;
	size_t sample_bytes;
	bool pinned;	 /* page-locked memory */
	uint64_t budget; /* of it */
};

struct received;

/* As remote_ops.open; -E2BIG, -EPERM, -ENOMEM: no memory for the batches. With
 * a text. */
int received_new(const struct received_config *c, struct received **ret,
		 struct err *err);
void received_free(struct received *r);
/* As pipeline_begin; received_next reports errors. */
void received_begin(struct received *r, uint64_t epoch, const uint32_t *order,
		    uint64_t n);
/* As remote_ops.cut, of the epoch that has begun. */
uint64_t received_cut(struct received *r, uint64_t n);
/* As pipeline_next_until. What was lost with others does not come: the epoch
 * ends without it. */
int received_next(struct received *r, uint64_t idle, uint64_t until,
		  struct delivery *ret, struct err *err);
void received_release(struct received *r, struct delivery *d);
uint32_t received_n_ready(struct received *r);
/* Samples of the epoch that received_next has not delivered. */
uint64_t received_left(const struct received *r);
/* Any thread. */
void received_stop(struct received *r);
/* Peak bytes of page-locked memory. */
uint64_t received_pinned(struct received *r);
json_t *received_json(struct received *r);

#endif
