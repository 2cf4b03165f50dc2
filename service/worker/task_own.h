/* SPDX-License-Identifier: MIT */
/* Private to a task: its state; its thread (task_thread.c), which runs the
 * stages; and its part on the thread of the loop (task_loop.c). */
#ifndef GPEMU_SERVICE_WORKER_TASK_OWN_H
#define GPEMU_SERVICE_WORKER_TASK_OWN_H

#include <pthread.h>

#include "service/worker/buckets.h"
#include "service/worker/consumers.h"
#include "service/worker/task.h"

struct task {
	struct task_config c;
	char *definition;
	struct shared *shared; /* NULL: trainers do not read the same */
	pthread_t thread;
	/* the thread's */
	struct stages stages;
	struct buckets *buckets; /* NULL: there are no rounds */
	uint64_t pass;		 /* of an order of its own */
	uint64_t added;		 /* splits taken from `split` */
	uint64_t current;	 /* the epoch of its pipeline */
	uint64_t n_in;		 /* batches in the pipeline */
	uint64_t *clock;	 /* of each owner, at its last batch */
	uint32_t n_clocks;
	bool by_owner; /* batches have clocks of their owner alone */

	pthread_mutex_t lock; /* guards all below */
	pthread_cond_t work;
	bool stopping, over, begun, opened;
	struct err err; /* why it failed */
	bool failed, told;
	struct pipeline *pipeline; /* replaced by the thread only */
	uint32_t windows;	   /* of a pipeline */
	uint64_t epoch, samples;
	uint64_t turn; /* counts epochs; the thread's pipeline is of `now` */
	uint64_t now;
	/* of the epoch */
	struct splits splits; /* ASSIGNED: was given */
	uint32_t *split;      /* n_given, in their order */
	uint32_t n_given, n_asked;
	uint64_t n_planned; /* batches of the splits that were given */
	bool none;
	uint64_t starved_ns;
	struct task_batch *batch; /* windows; by number modulo windows */
	uint64_t n_acked, n_made; /* batches [n_acked, n_made) are kept */
	struct consumers consumers;
	uint64_t spent_ns;   /* by all threads or cores, in this epoch */
	uint32_t n_parallel; /* of these */
};

/* The thread; `arg`: the task. Returns NULL. */
void *task_run(void *arg);

#endif
