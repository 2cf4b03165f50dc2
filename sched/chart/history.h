/* SPDX-License-Identifier: MIT */
/*
 * Who ran where, and when: the runs of a schedule, as it was made, and as bars
 * in rows to be drawn.
 */
#ifndef GPEMU_SCHED_CHART_HISTORY_H
#define GPEMU_SCHED_CHART_HISTORY_H

#include "sched/core/job.h"

/* A job on the same parts. */
struct history_run {
	uint32_t job;
	uint64_t from_ns, until_ns; /* UINT64_MAX: it has not ended */
	size_t first, n_parts;	    /* of the history's parts */
};

struct history {
	struct history_run *runs; /* by beginning */
	size_t n, allocated;
	struct sched_part *parts;
	size_t n_parts, parts_allocated;
	size_t *last; /* of each job: its last run, counted from 1 */
};

/* A schedule with its name, to be drawn. */
struct history_named {
	const char *name;
	const struct history *history;
};

/* -ENOMEM. Call history_fini, failed or not. */
int history_init(struct history *h, size_t n_jobs);
void history_fini(struct history *h);
/* The job runs on its parts from now on. A run that ended just now on the same
 * ones goes on. -ENOMEM. */
int history_begin(struct history *h, uint32_t job, const struct sched_job *of,
		  uint64_t now_ns);
/* It ends, if it runs. */
void history_end(struct history *h, uint32_t job, uint64_t now_ns);

/* --- rows ----------------------------------------------------------------- */

/* A GPU, or the CPUs of a node: of one without GPUs, or on which a job ran
 * without. */
struct history_row {
	uint32_t node;
	int gpu;	  /* -1: the CPUs */
	uint32_t n_lanes; /* runs at the same time, at most */
};

/* A run in a row. Those that overlap are in different lanes. */
struct history_bar {
	uint32_t row, run;
	uint32_t lane;
	uint32_t n_lanes; /* of those that overlap, directly or by others */
};

struct history_rows {
	struct history_row *rows; /* by node */
	size_t n;
	struct history_bar *bars; /* by row, and by beginning */
	size_t n_bars, allocated;
};

/* Runs that last no time are left out. -ENOMEM. Call history_rows_fini, failed
 * or not. */
int history_rows_make(const struct history *h, const struct cluster *c,
		      struct history_rows *ret);
void history_rows_fini(struct history_rows *r);

#endif
