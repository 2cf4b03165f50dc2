/* SPDX-License-Identifier: MIT */
/*
 * Emulated GPUs shared by several jobs. Pure: no clock, no lock, no waiting.
 * The caller passes the time (emulated ns, monotonic) and gets events with
 * their times, so the same code runs in gpemu-gpud and on an event clock.
 *
 *	join -> [queue] -> resident: memory is held on all its GPUs at once
 *	submit -> copy (the GPU's copy engine, one after the other)
 *	       -> ready -> runs when the scheduler says so -> done
 *	leave: at any time; memory and lanes are free at once
 *
 * How jobs share a GPU:
 *
 *	time	one iteration at a time, as the driver's time slicing: while k
 *		jobs have one that is ready, it runs at slicing(k) of its
 *		speed, and each of them waits for the others. Memory: the
 *		persistent parts of all jobs and the largest ephemeral part.
 *	lanes	memory by share/lanes.h. One iteration at a time, or one in
 *		each lane if the scheduler is `concurrent`.
 *	mps	as separate processes: each job holds its peak, all iterations
 *		that are ready run at once.
 *
 * Each of k concurrent iterations runs at speedup(k) / k of its own speed; the
 * default is 1 / k, no gain. An iteration of a job with several GPUs runs on
 * all of them at the pace of the slowest.
 *
 * A quota may have a part of a GPU's time, whether the others run or not: its
 * jobs share the GPU among themselves, at that part of their speed, and hold
 * their peaks; all other jobs share what such quotas leave. It has a part of
 * nothing else: its jobs wait for memory that others hold, and their copies
 * share the link.
 */
#ifndef GPEMU_SHARE_SHARE_H
#define GPEMU_SHARE_SHARE_H

#include "share/state.h"

/* How fast iterations run: the passage of time of share/share.h. */

/* Its iteration is done. What is left is a rounding error of fractions of a
 * ns. */
static inline bool pace_ended(const struct share_job *job)
{
	return job->running && job->left_ns < .5;
}

/* The quota with a part of this GPU's time that the job has, or NULL: it is one
 * of those who share the rest. */
static inline struct share_quota *pace_apart(const struct share_want *w,
					     uint32_t gpu)
{
	return w->quota && w->quota->part_milli[gpu] ? w->quota : NULL;
}

/* The time of the next event; SHARE_NEVER: none without a call. */
uint64_t share_next(const struct share *s);
/* The quota gets so many thousandths of the GPU's time. -EBUSY: one of its jobs
 * is there, or it would leave no time to a job there that has no part; -ENOSPC:
 * more than the other quotas leave; each with a text. After share_advance. */
int share_set_part(struct share *s, struct share_quota *q, uint32_t gpu,
		   uint32_t milli, struct err *err);

/* The copies to the GPUs: each has an engine that makes one after the other. */

/*
 * Copy the batch of the next iteration to the nth GPU of a resident job, from
 * 0, before the others'. -EINVAL: there is no such GPU, or it has a batch;
 * others as share_submit.
 */
int share_copy(struct share *s, struct share_job *job, uint32_t nth,
	       uint64_t copy_ns, uint64_t *ret_start, uint64_t *ret_end);

/* "time", "lanes", "mps"; -EINVAL with a text. */
int share_mode_parse(const char *s, enum share_mode *ret, struct err *err);
const char *share_mode_name(enum share_mode mode);

/* 0 or -ENOMEM. The config is copied; its pointers must stay valid. */
int share_new(const struct share_config *config, struct share **ret);
void share_free(struct share *s);

/*
 * Add a job. It is admitted at once if there is room, else it waits. -EINVAL:
 * no GPUs or more than exist, or a peak below the persistent part; -E2BIG: it
 * does not fit into an empty GPU, or its whole quota; -EAGAIN: max_jobs
 * reached; -ENOMEM; each with a text. Like share_submit and share_leave, call
 * it after share_advance to the same time.
 */
int share_join(struct share *s, const struct share_want *want, void *owner,
	       struct share_job **ret, struct err *err);
/* Remove the job in any state and free it. Others need not wait for its copies.
 */
void share_leave(struct share *s, struct share_job *job);

/*
 * Submit the next iteration of a resident job: `copy_ns` to copy its batch to
 * the GPUs that have none, `work_ns` of computation. *ret has the times of the
 * copy. -EBUSY: SHARE_DEPTH are in flight; -EAGAIN: not admitted yet.
 */
int share_submit(struct share *s, struct share_job *job, uint64_t id,
		 uint64_t copy_ns, uint64_t work_ns,
		 struct share_iteration *ret);

/* Admit what waits and fits. */
void share_admit(struct share *s);
/* Nobody joins with the quota any more: its parts are free. Its jobs stay: the
 * caller ends them. */
void share_end_parts(struct share *s, const struct share_quota *q);
/* The GPU fails, or is repaired. Its jobs stay: the caller ends them. */
void share_mark(struct share *s, uint32_t gpu, bool failed);

/* Does another job wait for a resource that this one holds idle: memory of a
 * GPU that could admit it, or the turn on a GPU under an exclusive scheduler?
 */
bool share_blocks(const struct share *s, const struct share_job *job);

/* Process all events until `now`, in order. */
void share_advance(struct share *s, uint64_t now);

/* The job's lane on a GPU that it is on. */
uint32_t share_lane(const struct share *s, const struct share_job *job,
		    uint32_t gpu);
#endif
