/* SPDX-License-Identifier: MIT */
/*
 * The training loop: takes batches from the pipeline and feeds them to a
 * device (emu/gpu/device.h), whose waits are for absolute deadlines: the start
 * of each step follows from the end of the one before and from when its batch
 * was ready, not from when this thread woke up. What else is to be known or
 * done about steps, observers do (loader/account/observer.h).
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

#include <stdbool.h>
#include <stdint.h>

#include "emu/gpu/device.h"
#include "loader/account/observer.h"
#include "loader/pipeline/pipeline.h"

/* Batches of a step, from the first until the device has reported it. */
struct train_flight {
	struct delivery batch[GPUS_MAX];
	uint32_t n;
	bool even; /* the step has less than a batch for each GPU */
};

/* An epoch on its way. */
struct train_now {
	uint64_t epoch, n_done; /* steps that were reported */
	/* in turn: of the step that is put together, and of the one before */
	struct train_flight flight[DEVICE_STEPS];
	struct train_flight *next;
	/* of that: */
	uint32_t given;		     /* so many batches were released, */
	uint32_t samples;	     /* the samples of all */
	uint64_t bytes;		     /* and what those weigh */
	uint64_t copy_end[GPUS_MAX]; /* to each GPU; 0: not on its way */
	struct place *kept;	     /* of those given back before their step */
	/* the step that was reported last, and of its data wait */
	struct gpu_step last;
	struct stalls stalls;
};

struct train {
	struct tick *tick;
	struct device *device; /* started */
	struct pipeline *pipeline;
	const struct gpus_config *gpus;
	uint32_t batch; /* samples of a step for each GPU */
	bool pinned;	/* batches come from page-locked memory */
	struct observers observers;
	struct train_now now;
};

/*
 * One epoch over order[0..n):
 *
 *	train_begin(t, epoch, order, n);
 *	while ((r = train_next(t, &d, err)) == 0 &&
 *	       (r = train_step(t, &d, &step, err)) == 0)
 *		;
 *	r = train_end(t, r);
 */
void train_begin(struct train *t, uint64_t epoch, const uint32_t *order,
		 uint64_t n);
/* As pipeline_next; the batch of the GPU whose turn it is. */
int train_next(struct train *t, struct delivery *ret, struct err *err);
/*
 * Train on a batch: returns when the device has room for the next one. The
 * batch is released on the way. With several GPUs that have a batch each the
 * step is that of the last one: before, *ret is only what is known yet, with
 * step_end 0. On a server's GPU the step is the last one that it reported as
 * done. -errno of the device, or of an observer's `after`.
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
 * it, or -errno as train_step. */
int train_flush(struct train *t, int r, struct err *err);
/*
 * Wait until all steps are computed. `r`: why it is over; returns it, but 0
 * for -ENODATA. With an error the pipeline is interrupted and joined: nobody
 * reads, or writes to the timeline, any more.
 */
int train_end(struct train *t, int r);

#endif
