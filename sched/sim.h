/* SPDX-License-Identifier: MIT */
/*
 * gpemu-sched on an event clock: the simulated driver of policies, and what a
 * run of it gives.
 */
#ifndef GPEMU_SCHED_SIM_H
#define GPEMU_SCHED_SIM_H

#include <jansson.h>
#include <stdatomic.h>

#include "common/conf/plugin_choice.h"
#include "common/hist.h"
#include "common/program/progress.h"
#include "sched/core/schedule.h"
#include "sched/timeline.h"
#include "sched/trace/workload.h"

struct summary {
	double mean_s, p50_s, p95_s, p99_s, max_s;
};

/* Of all jobs, or of those of one user or class. */
struct group_result {
	size_t n;
	struct summary jct;   /* completion: from arrival to end */
	double wait_s, run_s; /* means; wait: in no run */
	double slowdown;      /* mean of completion over work */
};

struct sim_result {
	struct group_result all;
	struct group_result *users, *classes;
	double makespan_s;   /* from the first arrival to the last end */
	double utilisation;  /* GPU time allocated, of that which there was */
	struct timeline use; /* of GPUs: how many were allocated */
	double jain;	     /* fairness: of the slowdowns of jobs */
	double slowdown_max;
	/* GPU time in which jobs needed more memory than their GPU has */
	double over_s;
	uint64_t n_preempted, n_moved, n_decisions, n_events;
	struct hist decisions; /* wall time of each */
};

/* A policy with a placement on a workload and a cluster. */
struct sim_cell {
	struct plugin_choice policy, placement;
	char *name;	  /* "srtf", "srtf tune" */
	struct job *jobs; /* as they ended; the names are the workload's */
	struct sim_result result;
	bool done;
};

struct sim {
	const struct cluster *cluster; /* all free */
	const struct workload *workload;
	uint64_t seed;
	uint64_t round_ns; /* decisions at its multiples; 0: at each event */
	struct sim_cell *cells;
	size_t n_cells;
	struct progress bar;
	uint64_t n_done;  /* jobs, of all cells */
	atomic_bool stop; /* set from any thread: -EINTR */
};

/* Can every job run on the cluster? -EINVAL with a text that names one. */
int sim_check(const struct workload *w, const struct cluster *c,
	      struct err *err);
/* Nothing happens any more, and not all jobs are done: -EDEADLK with a text
 * that says why. */
int sim_stuck(const struct sim *sim, const struct sim_cell *cell,
	      struct err *err);
/*
 * Run a cell until all jobs are done. -EINVAL with a text: the policy breaks
 * its contract; -EDEADLK: it leaves jobs waiting; -EINTR, -ENOMEM.
 */
int sim_run(struct sim *sim, struct sim_cell *cell, struct err *err);
void sim_fini(struct sim *sim);

/* Completion time of a job that is done: from arrival to end. */
static inline uint64_t job_jct(const struct job *job)
{
	return job->end_ns - job->arrival_ns;
}

/* Fill in the result from the jobs, which are all done. -ENOMEM. */
int result_make(const struct workload *w, const struct job *jobs,
		struct sim_result *ret);
void result_fini(struct sim_result *r);

/* Draw completion times and the use of GPUs of the cells that are done into a
 * file that gnuplot_check() accepts. -errno with a text. */
int plot_draw(const struct sim *sim, const char *path, struct err *err);

void report_table(const struct sim *sim);
/* "results": NULL: no memory. */
json_t *report_json(const struct sim *sim, bool per_job);

#endif
