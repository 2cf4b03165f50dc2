/* SPDX-License-Identifier: MIT */
/*
 * A worker's part in a job: a thread that runs the loader's stages over the
 * splits that it is given, and keeps the batches until the trainer has them.
 *
 *	task_split --> [ splits ] --> pipeline --> batches --task_batch--> sent
 *	                                 ^                                   |
 *	                                 '------- windows <----task_ack------'
 *
 * The pipeline's windows are the only memory of batches: a trainer that does
 * not read stops the stages. Batches have numbers, from 0 in each epoch, and
 * one that was sent over a connection that broke is sent again.
 *
 * The trainers of a job that is shared read the same batches, each at its own
 * pace, from a sliding window beside that (service/decide/sweep.h): the stages
 * make the next batch when the first trainer wants it. With coordinated reads
 * each has batches of its own, in rounds of the same length
 * (service/worker/consumers.h, buckets.h).
 *
 * All but the thread itself is for one thread, that of the worker's loop.
 */
#ifndef GPEMU_SERVICE_WORKER_TASK_H
#define GPEMU_SERVICE_WORKER_TASK_H

#include <stdbool.h>

#include "loader/pipeline/pipeline.h"
#include "net/parcel.h"
#include "service/core/splits.h"
#include "service/decide/sweep.h"
#include "service/proto/msg.h"
#include "service/worker/stages.h"

struct task;

/* A batch that is ready. */
struct task_batch {
	struct delivery d;
	uint32_t split;	       /* 0 with SPLIT_OFF */
	uint64_t position;     /* in the order of the epoch, in batches; of a
				* shared job as its trainers count */
	uint64_t starved_ns;   /* the task waited for a split before it */
	struct parcel *parcel; /* of a shared job: its samples; else NULL */
};

/* Of all tasks, also those that have ended; atomic. */
struct task_totals {
	uint64_t n_made;   /* batches */
	uint64_t spent_ns; /* on them, by all threads or virtual cores */
	/* by how much batches of one round differ, in all these rounds */
	uint64_t n_rounds, spread;
};

struct task_config {
	uint64_t job, number; /* as in struct job */
	uint64_t worker;      /* this worker's number */
	const char *definition;
	enum split_mode mode;
	uint32_t batch, per_split;
	struct share share;
	uint64_t window_bytes;		      /* of SHARE_WINDOW */
	const struct stages_options *options; /* borrowed, as are these */
	struct task_totals *totals;
	struct tick *tick;
	void (*changed)(void *ctx); /* any thread: look at the task again */
	void *ctx;
};

/* -ENOMEM, -EAGAIN (no thread). */
int task_new(const struct task_config *c, struct task **ret);
/* It ends soon; batches are gone. */
void task_stop(struct task *t);
/* Has the thread ended? Then task_free does not wait. */
bool task_is_over(struct task *t);
void task_free(struct task *t);
uint64_t task_job(const struct task *t);
/* Is it the same job still? */
bool task_does(const struct task *t, const struct task_config *c);
bool task_has_splits(const struct task *t);

/* The job is in this epoch of `n` samples. The same again has no effect. */
void task_epoch(struct task *t, uint64_t epoch, uint64_t n);
/* Of a job that is shared, any: its trainers have their own. */
bool task_in_epoch(const struct task *t, uint64_t epoch);
/* Splits to request now; they count as requested. */
uint32_t task_wants(struct task *t, uint64_t *ret_epoch);
/* The dispatcher is connected again: what was requested is to be requested
 * anew, and a failure to be reported. */
void task_forget(struct task *t);
/* One was given; a second time has no effect. -EPROTO: there is no such split.
 */
int task_split(struct task *t, uint64_t epoch, uint32_t split);
/* There are no more in this epoch. */
void task_none(struct task *t, uint64_t epoch);

/* The consumers of rounds; otherwise 1: what follows is for consumer 0. */
uint32_t task_consumers(const struct task *t);
/* Consumer i has room for its batches below `number`. May more of them leave
 * now? */
bool task_request(struct task *t, uint32_t i, uint64_t number);
/* Its batch `number`, until task_ack, task_epoch or task_stop; NULL: not yet.
 */
const struct task_batch *task_batch(struct task *t, uint32_t i,
				    uint64_t number);
/* It has all its batches below `number`. -EPROTO: it cannot. */
int task_ack(struct task *t, uint32_t i, uint64_t number);
/* The batches that it has. */
uint64_t task_acked(const struct task *t, uint32_t i);
/* Do several trainers read the same batches? Then instead of these four: */
bool task_is_shared(const struct task *t);
/* The key of their parcels. */
const struct seal_key *task_key(const struct task *t);
/* The next batch for a reader, until the next call; NULL: not yet. */
const struct task_batch *task_shared(struct task *t, struct sweep_reader *at);
/* Will there be no batch of this number in the epoch? */
bool task_is_empty(struct task *t, uint64_t number);
/* Has the trainer all batches of the splits that were requested? */
bool task_is_idle(struct task *t);
/* Emulated ns for a batch of this epoch, if nothing keeps the stages waiting;
 * 0: there was none. */
uint64_t task_cost(struct task *t);
/* Once: why it failed, malloc'ed; NULL: it did not, or it was reported. */
char *task_failure(struct task *t);
/* The dispatcher may not know: why it failed is reported once more. */
void task_tell_again(struct task *t);

#endif
