/* SPDX-License-Identifier: MIT */
/*
 * The batches of a job that several trainers share (service/decide/sweep.h),
 * each in a parcel of its own: the pipeline's windows are free for the next
 * ones, and a batch is copied and sealed once, under a key that is drawn here
 * and gone with the job. Its number is that in the sweep, so that no two
 * batches have the same one. For one thread, that of the worker's loop.
 */
#ifndef GPEMU_SERVICE_WORKER_SHARED_H
#define GPEMU_SERVICE_WORKER_SHARED_H

#include "loader/pipeline/pipeline.h"
#include "net/parcel.h"
#include "service/decide/sweep.h"
#include "service/proto/msg.h"

/* A batch that is ready. */
struct task_batch {
	struct delivery d;
	uint32_t split;	       /* 0 with SPLIT_OFF */
	uint64_t position;     /* in the order of the epoch, in batches; of a
				* shared job as its trainers count */
	uint64_t starved_ns;   /* the task waited for a split before it */
	struct parcel *parcel; /* of a shared job: its samples; else NULL */
};

struct shared;

/* -ENOMEM. */
int shared_new(uint64_t job, uint64_t limit_bytes, struct shared **ret);
/* NULL is allowed. */
void shared_free(struct shared *w);
/* For its trainers: what its parcels are sealed with. */
const struct seal_key *shared_key(const struct shared *w);
/*
 * The next batch for a reader, until shared_add; NULL: there is none now. Its
 * `position` is its number, from 0; its samples are in its parcel alone. A
 * reader whose place is in a sweep that was longer begins anew.
 */
const struct task_batch *shared_next(struct shared *w, struct sweep_reader *at);
/* A sealed copy of the batch, for all readers. -EFBIG: larger than the window,
 * or than a frame; -ENOMEM. */
int shared_add(struct shared *w, const struct task_batch *b);

#endif
