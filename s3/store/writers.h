/* SPDX-License-Identifier: MIT */
/*
 * Threads for the real operations of writes: copies, joins of parts, syncs. A
 * sync of a slow disk takes long; neither connections nor the reads of the
 * device wait for it here.
 */
#ifndef GPEMU_S3_STORE_WRITERS_H
#define GPEMU_S3_STORE_WRITERS_H

#include <stdbool.h>

/* arbitrary: syncs that begin together share a commit of the file system's
 * journal, so more are faster on a slow disk. Each has two files open at most
 * that are of no connection. */
enum { WRITERS_MOST = 16, WRITERS_FILES = 2 * WRITERS_MOST };
/* So many of them take long jobs; arbitrary: the others stay for short ones,
 * which would wait for minutes behind copies of large objects. */
enum { WRITERS_LONG = 12 };

struct writers;

struct write_job {
	/* On one of the threads; `stopping`: there is none any more, on the
	 * caller's or one of them. It may free the job. */
	void (*run)(struct write_job *j, bool stopping);
	bool is_long;		/* it moves an object's bytes */
	struct write_job *next; /* private */
};

/* -ENOMEM, -EAGAIN (no thread). */
int writers_new(struct writers **ret);
/* Any thread. First come, first served, among long ones and among others. */
void writers_add(struct writers *w, struct write_job *j);
/* What runs is completed, what waits ends with `stopping`, as what is added
 * later. NULL is allowed. */
void writers_stop(struct writers *w);
/* Stops first. NULL is allowed. */
void writers_free(struct writers *w);

#endif
