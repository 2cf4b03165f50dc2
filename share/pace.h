/* SPDX-License-Identifier: MIT */
/* How fast iterations run: the passage of time of share/share.h. */
#ifndef GPEMU_SHARE_PACE_H
#define GPEMU_SHARE_PACE_H

#include "share/state.h"

/* Advance running iterations to `now`. */
void pace_settle(struct share *s, uint64_t now);
/* The job's iteration runs from now on, or (`by` -1) no more. */
void pace_count(struct share *s, const struct share_job *job, int by);

/* The time of the next event; SHARE_NEVER: none without a call. */
uint64_t share_next(const struct share *s);
/* The quota gets so many thousandths of the GPU's time. -EBUSY: one of its jobs
 * is there, or it would leave no time to a job there that has no part; -ENOSPC:
 * more than the other quotas leave; each with a text. After share_advance. */
int share_set_part(struct share *s, struct share_quota *q, uint32_t gpu,
		   uint32_t milli, struct err *err);

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

#endif
