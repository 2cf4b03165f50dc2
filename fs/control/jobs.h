/* SPDX-License-Identifier: MIT */
/*
 * One thread for work that may wait for a file: control commands that name
 * one, and a reload. The file may be in the mount itself, so the threads that
 * serve the mount must stay free. Jobs run one after the other; this alone
 * serialises changes of the configuration.
 *
 * The end of the mount does not wait for a job either: jobs_stop answers the
 * clients that wait for one. jobs_free joins the thread, after the end of the
 * mount's connection, which also ends what the job waits for.
 */
#ifndef GPEMU_FS_CONTROL_JOBS_H
#define GPEMU_FS_CONTROL_JOBS_H

#include <stdbool.h>

struct job {
	/* On the jobs' thread. */
	int (*work)(struct job *job);
	/* Once, on any thread: `r` is the result of work, -ECONNABORTED, or
	 * -EAGAIN (no thread, or too many jobs). */
	void (*done)(struct job *job, int r);
	/* After both. */
	void (*free)(struct job *job);
	/* private */
	bool notified;
	struct job *next;
};

struct jobs;

/* -ENOMEM. */
int jobs_new(struct jobs **ret);
/* Append a job; the first one starts the thread. After jobs_stop, done is
 * called at once. */
void jobs_add(struct jobs *jobs, struct job *job);
/* No job begins any more; calls done of all jobs, also of the running one,
 * whose work may go on. NULL is allowed, as below. */
void jobs_stop(struct jobs *jobs);
/* Stops first; waits for the running one. */
void jobs_free(struct jobs *jobs);

#endif
