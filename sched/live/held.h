/* SPDX-License-Identifier: MIT */
/* What the processes of jobs have: parts are taken when one starts, and given
 * back when it has ended, in l->held and in the job's `held`. Those of a group
 * have theirs together. The history has all of it. */
#ifndef GPEMU_SCHED_LIVE_HELD_H
#define GPEMU_SCHED_LIVE_HELD_H

#include "sched/live/run.h"

/* Is what the policy gives the job held by no process? */
bool held_is_free(const struct live *l, const struct sched_job *job);
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

/* --- groups --------------------------------------------------------------- */

/*
 * Jobs that take turns on the same GPUs (ACTION_GROUP). Their processes are
 * started together, in the best order, and share a file of locks
 * (emu/node/turns.h) and a number, live_job.group. One that ends leaves the
 * others as they are; a group that gets another job is started anew.
 */

/* The descriptor is of the job alone, and locked for it. */
struct group_seat {
	uint32_t job;
	int fd;
	char text[100]; /* for --turns */
};

/* Are the processes of all with whom the job takes turns in its group? */
bool group_stays(const struct live *l, uint32_t job);
/* Does no process run of the job, or of those with whom it takes turns? */
bool group_is_idle(const struct live *l, uint32_t job);
/* The process of the job belongs to the group that its job is in. */
void group_join(struct live *l, uint32_t job);
/* Somebody else of the same group who holds its parts, or NULL. */
const struct live_job *group_holder(const struct live *l, uint32_t job);
/*
 * The seats of the job and of those with whom it takes turns; of one that is
 * alone the descriptor is -1. Their number, or -errno with a text. Close with
 * group_close, failed or not.
 */
int group_open(const struct live *l, uint32_t job,
	       struct group_seat ret[GROUP_MAX], struct err *err);
void group_close(struct group_seat seats[GROUP_MAX]);

#endif
