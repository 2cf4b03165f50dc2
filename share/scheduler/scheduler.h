/* SPDX-License-Identifier: MIT */
/*
 * Contract of a scheduler: it decides which job on a GPU runs its next
 * iteration, whenever an iteration ends or becomes ready. Iterations are not
 * preempted. Switching jobs costs nothing, because their persistent memory
 * stays on the device.
 *
 * A scheduler is an order of jobs and three properties; ties go to the job that
 * joined first. Hooks are pure: they may change nothing but the `key` of a job,
 * which belongs to them (initially 0). NULL hooks: `order` and `queue_order`
 * are by arrival, the others do nothing.
 */
#ifndef GPEMU_SHARE_SCHEDULER_SCHEDULER_H
#define GPEMU_SHARE_SCHEDULER_SCHEDULER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/plugin.h"

/* The remaining time of a job that did not announce its length. */
#define SCHEDULER_UNKNOWN UINT64_MAX

/* A job as seen by a scheduler. Times are emulated ns. */
struct scheduler_job {
	uint64_t seq;	       /* of joining: 0, 1, 2, ... */
	uint64_t last_start;   /* 0: never started; else the number of its
				* latest start among all starts */
	uint64_t ready_ns;     /* when its next iteration became ready */
	uint64_t remaining_ns; /* alone on its GPUs; or SCHEDULER_UNKNOWN */
	double key;
};

struct scheduler_ops {
	struct plugin plugin;
	/* Only the first of the resident jobs in `order` runs on a GPU, even
	 * while it has nothing to run. */
	bool exclusive;
	/* Jobs in different lanes run concurrently. */
	bool concurrent;
	/* Jobs are admitted strictly in the order of the queue. */
	bool in_turn;
	/* < 0: `a` goes first; 0: the one that joined first. Compares jobs with
	 * a ready iteration; with `exclusive`, all jobs. */
	int (*order)(const struct scheduler_job *a,
		     const struct scheduler_job *b);
	/* The same for jobs that wait for memory. */
	int (*queue_order)(const struct scheduler_job *a,
			   const struct scheduler_job *b);
	/* A job was admitted; `jobs` are all on one of its GPUs, it included.
	 * Called for each of its GPUs. `options`: the scheduler's own; NULL:
	 * the defaults. */
	void (*admitted)(struct scheduler_job *const jobs[], size_t n,
			 const void *options);
	/* The job was given so much of a GPU's time. */
	void (*ran)(struct scheduler_job *job, double gpu_ns);
};

/* The table made by the build, terminated by NULL. */
extern const struct plugin *const scheduler_table[];

/* -1, 0, 1. */
#define SCHEDULER_COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

#endif
