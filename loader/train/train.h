/* SPDX-License-Identifier: MIT */
/*
 * The training loop: takes batches from the pipeline, lets the emulated GPUs
 * copy and compute them, and accounts for the time. The calling thread waits
 * for absolute deadlines: the start of each step follows from the end of the
 * one before and from when its batch was ready, not from when this thread
 * woke up.
 *
 * Several GPUs under DistributedDataParallel: each takes a batch of its own
 * from the pipeline, in turn, and a step begins when all have theirs. The last
 * step of an epoch may have fewer samples than that: they are cut evenly, as a
 * DistributedSampler does, once all of them are there. Under DataParallel a
 * step is one batch of the pipeline, as large as that of all GPUs together,
 * which GPU 0 cuts.
 */
#ifndef GPEMU_LOADER_TRAIN_TRAIN_H
#define GPEMU_LOADER_TRAIN_TRAIN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "emu/gpu/gpus.h"
#include "emu/profile/profile_prep.h"
#include "loader/account/account.h"
#include "loader/pipeline/pipeline.h"

/* An epoch on its way: for train.c, train_account.c and train_remote.c. */
struct train_now {
	struct gpus gpus;
	struct rng rng[GPUS_MAX];
	bool even;	/* the step on its way has less than a batch for each */
	uint32_t n;	/* batches of the step on its way, */
	uint32_t given; /* of which so many were released, */
	uint32_t samples; /* and their samples */
	uint64_t bytes;	  /* and what those weigh */
	struct delivery batch[GPUS_MAX];
	struct place *kept; /* of those given back before their step */
	struct gpus_part part[GPUS_MAX];
	struct gpu_step step[GPUS_MAX];
	/* of the data wait in the step that train_step returned last */
	struct stalls stalls;
	struct account *account;
	uint64_t start_ns, wall_ns; /* it began */
	uint64_t begun_ns;	    /* the last step was seen to begin */
	uint64_t first_end_ns;	    /* deadline: the first step ends */
};

struct train_remote;

struct train {
	struct tick *tick;
	struct train_remote *remote; /* NULL: the GPU is its own */
	struct pipeline *pipeline;
	const struct gpu_profile *gpu;
	const struct gpu_model *model;
	const struct gpus_config *gpus;
	uint32_t batch;	       /* samples of a step for each GPU */
	uint64_t sample_bytes; /* that the device copies, on average */
	bool inference;	       /* no backward pass */
	double jitter;	       /* of step times, as gpu_jitter */
	uint64_t seed;	       /* of that */
	const struct prep_profile *prep_gpu; /* NULL: nothing on the GPU */
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
/* As pipeline_next; the batch of the GPU whose turn it is. */
int train_next(struct train *t, struct delivery *ret, struct err *err);
/*
 * Train on a batch: returns when the device has room for the next one. The
 * batch is released on the way. With several GPUs that have a batch each the
 * step is that of the last one: before, *ret is only what is known yet, with
 * step_end 0. On a server's GPU the step is the last one that it reported as
 * done. -errno of `save`, or of train_remote_step.
 */
int train_step(struct train *t, struct delivery *d, struct gpu_step *ret,
	       struct err *err);
/*
 * Do not train on a batch. Those of the step on its way go first, so that all
 * are released in order. -ENOMEM; the batch is released in any case.
 */
int train_release(struct train *t, struct delivery *d, struct err *err);
/* Of several GPUs with a batch each: the step with which the epoch is over
 * before each has one. `r`: why it is, nothing is done when it failed; returns
 * it, or -errno of `save`. */
int train_flush(struct train *t, int r, struct err *err);
/*
 * Wait until all steps are computed. `r`: why it is over; returns it, but 0
 * for -ENODATA. With an error the pipeline is interrupted and joined: nobody
 * reads, or writes to the timeline, any more.
 */
int train_end(struct train *t, int r);

/* Wait for the model's way to the GPUs; the emulated ns it took. */
uint64_t train_load_model(struct train *t);

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
