/* SPDX-License-Identifier: MIT */
/*
 * The training loop: takes batches from the pipeline and feeds them to a device
 * (emu/gpu/device.h), which waits for absolute deadlines. The start of each
 * step follows from the end of the previous one and from when its batch was
 * ready, not from when this thread woke up. Accounting and checkpoints are
 * observers (loader/account/observer.h).
 *
 * Several GPUs under DistributedDataParallel: each takes its own batch from the
 * pipeline, in turn, and a step begins when all have theirs. The last step of
 * an epoch may have fewer samples: once all are there, they are split evenly,
 * as a DistributedSampler does. Under DataParallel a step is one batch of the
 * pipeline, as large as the batches of all GPUs together; GPU 0 splits it.
 *
 * Several nodes: each process drives one; their steps end together
 * (loader/nodes/sync.h).
 */
#ifndef GPEMU_LOADER_TRAIN_TRAIN_H
#define GPEMU_LOADER_TRAIN_TRAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "emu/gpu/device.h"
#include "loader/account/observer.h"
#include "loader/nodes/sync.h"
#include "loader/pipeline/intake.h"

/* The batches of a step, from the first until the device has reported the
 * step. */
struct train_flight {
	struct delivery batch[GPUS_MAX];
	uint32_t n;
	bool even; /* the step has less than a batch for each GPU */
};

/* Sequences are padded to the longest of their step, up to a multiple of so
 * many tokens, and a step takes so much less: its computation is taken to be
 * proportional to its tokens, the optimiser to be as long. */
struct train_pad {
	uint64_t multiple; /* 0: to the model's */
	uint64_t length;   /* the model's, in tokens */
	uint32_t token_bytes;
};

/* The current epoch. */
struct train_now {
	uint64_t epoch, n_done; /* steps reported */
	/* in turn: the step being assembled, and the previous one */
	struct train_flight flight[DEVICE_STEPS];
	struct train_flight *next;
	/* of the step being assembled: */
	uint32_t given;		     /* batches released */
	uint32_t samples;	     /* samples of its batches */
	uint64_t bytes;		     /* bytes of these samples */
	uint64_t longest;	     /* bytes of the largest file of them */
	uint64_t copy_end[GPUS_MAX]; /* to each GPU; 0: copy not started */
	struct place *kept;	     /* slots of batches released early */
	/* the last reported step, and its data wait */
	struct gpu_step last;
	struct stalls stalls;
};

struct train {
	struct tick *tick;
	struct device *device; /* started */
	struct intake *intake;
	struct sync *sync; /* with other nodes; NULL: there are none */
	const struct gpus_config *gpus;
	uint32_t batch; /* samples per step and GPU */
	bool pinned;	/* batches come from page-locked memory */
	struct train_pad pad;
	struct observers observers;
	struct train_now now;
};

/*
 * One epoch over order[0..n):
 *
 *	train_begin(t, epoch, order, n);
 *	while ((r = train_next(t, TICK_NEVER, &d, err)) == 0 &&
 *	       (r = train_step(t, &d, &step, err)) == 0)
 *		;
 *	r = train_end(t, r);
 */
void train_begin(struct train *t, uint64_t epoch, const uint32_t *order,
		 uint64_t n);
/* As pipeline_next_until; the batch is for the next GPU in turn. */
int train_next(struct train *t, uint64_t until, struct delivery *ret,
	       struct err *err);
/*
 * Train on a batch: returns when the device has room for the next one. The
 * batch is released on the way. If each of several GPUs takes a batch, the last
 * one completes the step; before, *ret has only what is known yet, with
 * step_end 0. On a server's GPU *ret is the last step that it reported as done.
 * -errno of the device, or of an observer's `after`.
 */
int train_step(struct train *t, struct delivery *d, struct gpu_step *ret,
	       struct err *err);
/*
 * Drop a batch. Batches of the step being assembled are released first, so that
 * the order of releases is kept. -ENOMEM; the batch is released in any case.
 */
int train_release(struct train *t, struct delivery *d, struct err *err);
/* If each of several GPUs takes a batch: submit the last step of an epoch that
 * ends before all have one. `r`: why it ends; after a failure nothing is
 * submitted. Returns `r`, or -errno as train_step. */
int train_flush(struct train *t, int r, struct err *err);
/*
 * Wait until all steps are complete. `r`: why the epoch ends; returns it, but 0
 * for -ENODATA. With an error the pipeline is interrupted and joined: reads,
 * and writes to the timeline, have ended.
 */
int train_end(struct train *t, int r);

#endif
