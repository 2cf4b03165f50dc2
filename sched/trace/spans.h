/* SPDX-License-Identifier: MIT */
/*
 * Jobs of a log: when they were submitted, began and ended. Their work is the
 * time between the last two, on the GPUs that they had; how long they waited
 * is what a simulation is to find out.
 *
 *	submitted     started                     ended
 *	    |--- wait ---|========= work =========|
 *
 * What is none, or not a whole one, is counted:
 *
 *	never started, or ended before it     left out
 *	work of 0 s                           left out
 *	started, and not ended                runs to the last time of the log
 *	no time of submission                 submitted when it started
 *
 * Read for their requests only (WORKLOAD_REQUESTS), all are jobs of a second.
 * Arrivals count from the first job.
 */
#ifndef GPEMU_SCHED_TRACE_SPANS_H
#define GPEMU_SCHED_TRACE_SPANS_H

#include "sched/trace/workload.h"

/* In seconds, of any clock; NAN: the log does not say. */
struct span {
	double submitted_s, started_s, ended_s;
	double before_s;     /* work of earlier attempts */
	const char *assumed; /* to be counted if it is a job; or NULL */
};

/*
 * A time: seconds as a number, or "2017-10-07 01:12:09", as UTC whatever zone
 * the log has; NAN where it is empty, None, null or nan. -EINVAL.
 */
int span_time(const char *text, size_t n, double *ret);
/* The time in a column of this row; NAN without the column. -EINVAL with a
 * text. */
int span_column(const struct trace_reader *t, int at, const char *what,
		double *ret);

/*
 * Add the job that ran so, or count why it is none; `line`: its number, or 0.
 * Takes over what `job` owns, failed or not. -ENOMEM, -E2BIG.
 */
int spans_add(struct trace_reader *t, struct sched_job *job,
	      const struct span *s, uint64_t line);
/* It is no job: count why. Frees what `job` owns. Returns 0. */
int spans_leave_out(struct trace_reader *t, struct sched_job *job,
		    const char *why, uint64_t line);

/* At the end of the trace: add those that still run. As spans_add. */
int spans_end(struct trace_reader *t);
void spans_free(struct span_set *set);

#endif
