/* SPDX-License-Identifier: MIT */
/* What the processes of jobs have: parts are taken when one starts, and given
 * back when it has ended, in l->held and in the job's `held`. Those of a group
 * (sched/live/group.h) have theirs together. The history has all of it. */
#ifndef GPEMU_SCHED_LIVE_HELD_H
#define GPEMU_SCHED_LIVE_HELD_H

#include "sched/live/run.h"

/* Is what the policy gives the job held by no process? */
bool held_is_free(const struct live *l, const struct job *job);
/* The process of a job takes that. -ENOMEM. */
int held_take(struct live *l, uint32_t job);
/* It has more or less of it, since now. -ENOMEM. */
int held_changed(struct live *l, uint32_t job);
/* It has ended, at a time, and left its group. */
void held_give(struct live *l, uint32_t job, uint64_t at_ns);
/* Does it have what the policy gives the job? */
bool held_same(const struct live *l, uint32_t job);
/* The same GPUs, but for CPUs and memory? */
bool held_same_gpus(const struct live *l, uint32_t job);

#endif
