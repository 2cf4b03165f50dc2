/* SPDX-License-Identifier: MIT */
/*
 * The batches of a job that several trainers share (service/decide/sweep.h),
 * each in memory of its own: the pipeline's windows are free for the next ones.
 * For one thread, that of the worker's loop.
 */
#ifndef GPEMU_SERVICE_WORKER_SHARED_H
#define GPEMU_SERVICE_WORKER_SHARED_H

#include "service/decide/sweep.h"
#include "service/worker/task.h"

struct shared;

/* -ENOMEM. */
int shared_new(uint64_t limit_bytes, struct shared **ret);
/* NULL is allowed. */
void shared_free(struct shared *w);
/*
 * The next batch for a reader, until shared_add; NULL: there is none now. Its
 * `position` is its number, from 0. A reader whose place is in a sweep that was
 * longer begins anew.
 */
const struct task_batch *shared_next(struct shared *w, struct sweep_reader *at);
/* A copy of the batch, for all readers. -EFBIG: larger than the window;
 * -ENOMEM. */
int shared_add(struct shared *w, const struct task_batch *b);

#endif
