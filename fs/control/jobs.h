/* SPDX-License-Identifier: MIT */
/*
 * One thread for what may wait for a file: control commands that name one, a
 * reload. Such a file may be in the mount itself, so the threads that serve
 * it must stay free; and as jobs come one after the other, nothing else
 * keeps changes of the configuration apart.
 *
 * The end of the mount does not wait for a job either: who waits for one is
 * answered by jobs_stop; the thread is joined by jobs_free, when the mount's
 * connection is gone and with it what the job waits for.
 */
#ifndef GPEMU_FS_CONTROL_JOBS_H
#define GPEMU_FS_CONTROL_JOBS_H

#include <stdbool.h>

struct job {
	/* On the jobs' thread. */
	int (*work)(struct job *job);
	/* Once, on any thread: with what work returned, -ECONNABORTED, or
	 * -EAGAIN (no thread, or too many wait). */
	void (*done)(struct job *job, int r);
	/* After both. */
	void (*free)(struct job *job);
	/* private */
	bool told;
	struct job *next;
};

struct jobs;

/* -ENOMEM. */
int jobs_new(struct jobs **ret);
/* Behind those that are there; the first one starts the thread. After
 * jobs_stop it is done at once. */
void jobs_add(struct jobs *jobs, struct job *job);
/* No job begins any more; all are done, the running one as far as anybody can
 * see. NULL is allowed, as below. */
void jobs_stop(struct jobs *jobs);
/* Stops first; waits for the running one. */
void jobs_free(struct jobs *jobs);

#endif
