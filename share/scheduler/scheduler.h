/* SPDX-License-Identifier: MIT */
/*
 * Contract of a scheduler: which of the jobs on a GPU runs its next
 * iteration, asked whenever an iteration ends or becomes ready. Iterations
 * are never broken off, so this is where jobs are switched; it costs nothing,
 * since what they keep stays in the device's memory.
 *
 * A scheduler is an order of jobs and three properties; where two jobs are
 * equal the one that joined first goes first. Hooks are pure: they see the
 * jobs, and may change nothing but a job's `key`, which is theirs (0 at
 * first). NULL hooks: `order` and `queue_order` are by arrival, the others do
 * nothing.
 */
#ifndef GPEMU_SHARE_SCHEDULER_SCHEDULER_H
#define GPEMU_SHARE_SCHEDULER_SCHEDULER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/plugin.h"

/* How a job's remaining time is told when nobody knows it. */
#define SCHEDULER_UNKNOWN UINT64_MAX

/* What a scheduler sees of a job. Times are emulated ns. */
struct scheduler_job {
	uint64_t seq;	       /* of joining: 0, 1, 2, ... */
	uint64_t last_start;   /* 0: never started; else the number of its
				* latest start among all starts */
	uint64_t ready_ns;     /* its next iteration became ready then */
	uint64_t remaining_ns; /* alone on its GPUs; or SCHEDULER_UNKNOWN */
	double key;
};

struct scheduler_ops {
	struct plugin plugin;
	/* Only the first of the resident jobs in `order` runs on a GPU, and
	 * nobody else while it has nothing to run. */
	bool exclusive;
	/* Jobs in different lanes run at the same time. */
	bool concurrent;
	/* Nobody is admitted before those who are ahead of him. */
	bool in_turn;
	/* < 0: `a` goes first; 0: whoever joined first. Of jobs with an
	 * iteration that is ready; `exclusive`: of all. */
	int (*order)(const struct scheduler_job *a,
		     const struct scheduler_job *b);
	/* The same of jobs that wait for memory. */
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

/* The build's table, ended by NULL. */
extern const struct plugin *const scheduler_table[];

/* -1, 0, 1. */
#define SCHEDULER_COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

#endif
