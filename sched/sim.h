/* SPDX-License-Identifier: MIT */
/*
 * gpemu-sched on an event clock: the simulated driver of policies, and what a
 * run of it gives.
 */
#ifndef GPEMU_SCHED_SIM_H
#define GPEMU_SCHED_SIM_H

#include <jansson.h>
#include <stdatomic.h>

#include "common/program/progress.h"
#include "sched/chart/history.h"
#include "sched/core/run.h"
#include "sched/core/timeline.h"
#include "sched/trace/workload.h"

struct summary {
	double mean_s, p50_s, p95_s, p99_s, max_s;
};

/* Of all jobs, or of those of one user or class. */
struct group_result {
	size_t n;
	struct summary jct;   /* completion: from arrival to end */
	double wait_s, run_s; /* means; wait: in no run */
	double gpu_s;	      /* GPU time that they had, together */
	/* completion over work; how fair that is by Jain's index */
	double slowdown, slowdown_max, jain;
	/*
	 * Completion over that which the job would have had with its share of
	 * the cluster, alone: 1 / n of it, for the n jobs that were there on
	 * average. Above 1: it would have been better off with that. Source:
	 * Mahajan et al., "Themis", NSDI 2020, section 3.
	 */
	double finish_time, finish_time_max;
};

struct sim_result {
	/* of the cluster, for result_make; 0: there are no finish-time ratios
	 */
	double gpus;
	struct group_result all;
	struct group_result *users, *classes;
	double makespan_s;  /* from the first arrival to the last end */
	double utilisation; /* GPU time allocated, of that which there was */
	/* of the GPU time that was free, what typical jobs could not have used
	 * (sched/core/frag.h) */
	double frag;
	bool frag_known;
	/* of GPUs: how many were allocated; zeros: not known */
	struct sched_timeline use;
	/* GPU time in which jobs needed more memory than their GPU has */
	double over_s;
	uint64_t n_preempted, n_moved, n_decisions, n_events;
	struct hist decisions; /* wall time of each */
};

/* A policy with a placement on a workload and a cluster. */
struct sched_sim_cell {
	struct plugin_choice policy, placement;
	char *name; /* "srtf", "srtf tune" */
	struct sched_job
		*jobs; /* as they ended; the names are the workload's */
	struct history history; /* if the struct sched_sim asks for it */
	struct sim_result result;
	bool done;
};

struct sched_sim {
	const struct cluster *cluster; /* all free */
	const struct sched_workload *workload;
	uint64_t seed;
	uint64_t round_ns; /* decisions at its multiples; 0: at each event */
	bool keep_history;
	struct sched_sim_cell *cells;
	size_t n_cells;
	struct progress bar;
	uint64_t n_done;  /* jobs, of all cells */
	atomic_bool stop; /* set from any thread: -EINTR */
};

/* Can every job run on the cluster? -EINVAL with a text that names one. */
int sim_check(const struct sched_workload *w, const struct cluster *c,
	      struct err *err);
/* Are there nodes without GPUs that no job can use, although some could run on
 * CPUs? With a text that says so. */
bool sim_cpus_idle(const struct sched_workload *w, const struct cluster *c,
		   struct err *ret);
/* Nothing happens any more, and not all jobs are done: -EDEADLK with a text
 * that says why. */
int sim_stuck(const struct sched_sim *sim, const struct sched_job *jobs,
	      struct err *err);
/* What a cell runs. */
struct sched_run_config sim_run_config(const struct sched_sim *sim,
				       const struct sched_sim_cell *cell);
/*
 * Run a cell until all jobs are done. -EINVAL with a text: the policy breaks
 * its contract; -EDEADLK: it leaves jobs waiting; -EINTR, -ENOMEM.
 */
int sim_run(struct sched_sim *sim, struct sched_sim_cell *cell,
	    struct err *err);
void sim_fini(struct sched_sim *sim);

/* Completion time of a job that is done: from arrival to end. */
static inline uint64_t job_jct(const struct sched_job *job)
{
	return job->end_ns - job->arrival_ns;
}

/* Fill in the result from the jobs, which are all done. -ENOMEM. */
int result_make(const struct sched_workload *w, const struct sched_job *jobs,
		struct sim_result *ret);
/* The use of GPUs, and the fragmentation, from a history. -ENOMEM. */
int result_replay(const struct sched_workload *w, const struct cluster *c,
		  const struct history *h, struct sim_result *ret);
void result_fini(struct sim_result *r);
/* The nearest rank of `n` numbers, 1 or more, which are sorted. */
double result_quantile(const double *v, size_t n, double q);

/* Draw completion times and the use of GPUs of the cells that are done into a
 * file that gnuplot_check() accepts. -errno with a text. */
int plot_draw(const struct sched_sim *sim, const char *path, struct err *err);

/* `kind`: what the header says, "SIMULATED". */
void report_table(const struct sched_sim *sim, const char *kind);
/* A table for the users, or the classes, of each cell. */
enum report_by { REPORT_USERS, REPORT_CLASSES };
void report_groups(const struct sched_sim *sim, enum report_by by);
/* "results": NULL: no memory. */
json_t *report_json(const struct sched_sim *sim, bool per_job);

#endif
