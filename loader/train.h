/* SPDX-License-Identifier: MIT */
/*
 * The training loop: takes batches from the pipeline, lets the emulated GPU
 * copy and compute them, and accounts for the time. The calling thread waits
 * for absolute deadlines: the start of each step follows from the end of the
 * one before and from when its batch was ready, not from when this thread
 * woke up.
 */
#ifndef GPEMU_LOADER_TRAIN_H
#define GPEMU_LOADER_TRAIN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "emu/gpu.h"
#include "loader/account.h"
#include "loader/pipeline.h"

/* An epoch on its way; train.c's own. */
struct train_now {
	struct gpu gpu;
	struct account *account;
	uint64_t start_ns, wall_ns; /* it began */
	uint64_t begun_ns;	    /* the last step was seen to begin */
	uint64_t first_end_ns;	    /* deadline: the first step ends */
};

struct train {
	struct tick *tick;
	struct pipeline *pipeline;
	const struct gpu_profile *gpu;
	const struct gpu_model *model;
	enum gpu_transfer transfer;
	bool pinned;	     /* batches come from page-locked memory */
	struct trace *trace; /* NULL: no timeline is wanted */
	FILE *step_log;	     /* NULL: no line for each step */
	/* NULL: nobody wants to know. What a step trains on, before the batch
	 * is given back; after each step, true to save the model's state then;
	 * to save it, during which the GPU stands still (0 or -errno). */
	void (*taken)(void *ctx, const struct delivery *d);
	bool (*stepped)(void *ctx);
	int (*save)(void *ctx, struct err *err);
	void *ctx;
	struct train_now now;
};

/*
 * One epoch over order[0..n):
 *
 *	train_begin(t, epoch, order, n, account);
 *	while ((r = train_next(t, &d, err)) == 0 &&
 *	       (r = train_step(t, &d, &step, err)) == 0)
 *		;
 *	r = train_end(t, r);
 *
 * The account, the caller's, is complete after train_end but for the CPU and
 * mount figures and those of checkpoints written.
 */
void train_begin(struct train *t, uint64_t epoch, const uint32_t *order,
		 uint64_t n, struct account *account);
/* As pipeline_next. */
int train_next(struct train *t, struct delivery *ret, struct err *err);
/*
 * Train on a batch: returns when the device has room for the next one. The
 * batch is released on the way. -errno of `save`.
 */
int train_step(struct train *t, struct delivery *d, struct gpu_step *ret,
	       struct err *err);
/*
 * Wait until all steps are computed. `r`: why it is over; returns it, but 0
 * for -ENODATA. -ECANCELED: the pipeline was interrupted, and is joined; other
 * errors leave out what the workers did.
 */
int train_end(struct train *t, int r);

struct ceiling {
	double samples_per_s, au;
	uint64_t steps;
	double time_scale;
};

/*
 * The rig's ceiling: the same model, GPU and batch size with the engine
 * `null`, for a few steps, at a time scale that makes them last about half a
 * wall second, but never slower than `time_scale`.
 */
int train_ceiling(const struct train *like, uint32_t batch, double time_scale,
		  struct ceiling *ret, struct err *err);

#endif
