/* SPDX-License-Identifier: MIT */
/*
 * CPUs and memory of a job that runs: given and taken without a restart.
 *
 *	CPUs	virtual cores of gpemu-train: `set cores N`, which it reads from
 *		the FIFO `control` in the job's folder
 *	memory	the cache of the job's mount, if there is one: `resize`, written
 *		to its .gpemu/control; but see remote.h
 *
 * The keeper of a job holds its FIFO open too, so that no command is lost
 * before gpemu-train reads, or when the scheduler is killed.
 */
#ifndef GPEMU_SCHED_LIVE_LEASE_H
#define GPEMU_SCHED_LIVE_LEASE_H

#include "sched/live/run.h"

/* May CPUs and memory of the job change while it runs? Not if it takes turns
 * with others, who have the same. */
bool lease_suits(const struct live *l, uint32_t job);
/* A process is about to start with what the job holds: its mount is told. The
 * name of its FIFO, malloc'ed; NULL: it needs none. -ENOMEM. */
int lease_begin(struct live *l, uint32_t job, char **ret_control);
/*
 * What processes hold becomes what their jobs were given: first all give back,
 * then all get what is free; what is not, they get in a later call. -errno with
 * a text.
 */
int lease_all(struct live *l, struct err *err);

#endif
