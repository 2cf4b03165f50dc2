/* SPDX-License-Identifier: MIT */
/*
 * The order in which a policy serves jobs, kept from one decision to the next.
 *
 * Waiting jobs are in a heap for each shape. Jobs of one shape ask for the
 * same: where the first of them does not fit, none of them does, and a walk
 * over all of them in their order need not look at more than the first one of
 * each shape. Running jobs are in one heap, the last one first.
 */
#ifndef GPEMU_SCHED_CORE_QUEUE_H
#define GPEMU_SCHED_CORE_QUEUE_H

#include "sched/core/job.h"

struct queued {
	double key; /* least first; ties by number */
	uint32_t job;
};

struct queue_shape {
	struct queued *v; /* heap, the first job first */
	size_t n, allocated;
	uint64_t stuck; /* number of the decision that found no place */
};

/* A shape with its first job. */
struct queue_head {
	struct queued first;
	uint32_t shape;
};

struct queue {
	struct queue_shape *shapes;
	size_t n_shapes;
	struct queue_head *heads; /* of the walk: heap, the first job first */
	size_t n_heads;
	struct queued *running;
	size_t n_running, running_allocated;
	size_t n_seen; /* jobs with lower numbers were taken in */
};

static inline bool queued_before(const struct queued *a, const struct queued *b)
{
	return a->key != b->key ? a->key < b->key : a->job < b->job;
}

/* For qsort(3): the same order. */
static inline int queued_compare(const void *a, const void *b)
{
	return queued_before(a, b) ? -1 : queued_before(b, a);
}

/* For the shapes of these jobs. -ENOMEM. Call queue_fini, failed or not. */
int queue_init(struct queue *q, const struct sched_job *jobs, size_t n);
void queue_fini(struct queue *q);
/* Neither waiting nor running jobs. */
void queue_reset(struct queue *q);

/* A job waits, or runs. Not during a walk. -ENOMEM. */
int queue_wait(struct queue *q, uint32_t shape, struct queued job);
int queue_run(struct queue *q, struct queued job);
/* The last of the running jobs is before where it was. */
void queue_sooner(struct queue *q, struct queued last);
/* It runs no more. */
void queue_drop_last(struct queue *q);

/*
 * A walk over the waiting jobs. queue_walk begins it, anew; queue_next is the
 * shape and the job that it has reached, NULL at the end. queue_take removes
 * that job, queue_skip leaves its shape out of the rest of the walk.
 */
void queue_walk(struct queue *q);
const struct queue_head *queue_next(const struct queue *q);
void queue_take(struct queue *q);
void queue_skip(struct queue *q);

#endif
