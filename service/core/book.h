/* SPDX-License-Identifier: MIT */
/*
 * What a dispatcher knows: jobs, the epoch that each is in, and its splits. It
 * changes by events alone, which are messages (service/proto/msg.h): those of
 * the journal when a dispatcher starts again, and new ones. So both lead to the
 * same book.
 *
 *	JOB	a new job
 *	EPOCH	the job begins it; rest: the workers of SPLIT_STATIC, u64 each
 *	SPLIT	id: the worker that it is assigned to
 *	DONE	the trainer has the split
 *	LOST	job 0: all; id: a worker, with all that it has not finished
 *	DROP	the job is over
 */
#ifndef GPEMU_SERVICE_CORE_BOOK_H
#define GPEMU_SERVICE_CORE_BOOK_H

#include <stdbool.h>

#include "service/core/registry.h"
#include "service/core/splits.h"
#include "service/proto/msg.h"

/* arbitrary: trainers that one dispatcher serves */
enum { BOOK_JOBS = 64 };

struct job {
	uint64_t id; /* chosen by its trainers: at random, or by a name */
	/* by the dispatcher, at random; 0: begun while another had it */
	uint64_t number;
	enum split_mode mode;
	uint32_t batch, per_split;
	struct share share;
	char *definition;
	bool begun; /* it is in an epoch */
	uint64_t epoch;
	struct splits splits;
	uint64_t gone_at; /* the dispatcher's: no trainer since then */
	/* the dispatcher's: what a trainer takes for a batch, and its workers,
	 * of which some may be gone: what a batch takes them, and why they
	 * cannot do the job; emulated ns, 0: not known; NULL: they can */
	uint64_t target_ns;
	struct job_worker {
		uint64_t id, ns;
		char *why;
	} worker[REGISTRY_MOST];
};

struct book {
	struct job *job[BOOK_JOBS]; /* owned */
	uint32_t n;
};

void book_fini(struct book *b);
struct job *book_find(const struct book *b, uint64_t job);
/* Its epoch; NULL: it is not in this one. */
struct job *book_epoch(const struct book *b, uint64_t job, uint64_t epoch);
/* Is the JOB message one that can be done? */
bool book_job_fits(const struct msg *m);
/* A JOB message; its definition is the job's. */
struct msg book_job_msg(const struct job *j);
/* Does the JOB message say the same as the job? */
bool book_job_equals(const struct job *j, const struct msg *m);
/* -EPROTO: the event does not fit; -ENOSPC: too many jobs; -ENOMEM. */
int book_apply(struct book *b, const struct msg *event);
/* The events that lead to this book. < 0 from `put` ends it. */
int book_dump(const struct book *b,
	      int (*put)(void *ctx, const struct msg *event), void *ctx);

#endif
