/* SPDX-License-Identifier: MIT */
/* Private to the dispatcher: its state, how it changes by events, and what the
 * guests are told. All on the thread of its loop. */
#ifndef GPEMU_SERVICE_DISPATCHER_STATE_H
#define GPEMU_SERVICE_DISPATCHER_STATE_H

#include <pthread.h>

#include "net/loop.h"
#include "service/core/journal.h"
#include "service/core/registry.h"
#include "service/dispatcher/config.h"
#include "service/dispatcher/fleet.h"
#include "service/proto/outbox.h"

struct counts {
	uint64_t epochs, assigned, done, lost, workers_lost, workers_left;
	struct ends ends;
};

struct guest {
	struct dispatcher *d;
	struct conn *conn;
	struct outbox out;
	enum msg_role role; /* 0: it has not said HELLO */
	uint64_t id;	    /* of the worker, or of the trainer's job */
	bool left;	    /* a worker that may end: nothing it says counts */
	/* a trainer: its number, the consumer that it is, whether it brought
	 * its job, and emulated ns in which it would use a batch, 0: unknown */
	uint64_t trainer;
	uint32_t consumer;
	bool joined;
	uint64_t target_ns;
	struct guest *prev, *next;
};

struct dispatcher {
	struct dispatcher_config c;
	struct loop *loop;
	struct book book;
	struct registry registry;
	struct journal journal;
	struct guest *guests;
	struct counts counts;
	uint64_t wanted;    /* workers, by the last estimate; 0: none yet */
	uint64_t shrink_at; /* not before: to a smaller estimate */
	struct fleet fleet; /* of the thread of dispatcher_run */
	uint32_t target;    /* atomic: processes of it */
	pthread_mutex_t lock;
	bool stopping; /* lock */
	int error;     /* lock; of the journal */
};

/* Any thread: end dispatcher_run. `error`: of the journal, or 0. */
void state_stop(struct dispatcher *d, int error);
/* A result of the journal. What is not in it must not leave: -EIO, and the
 * dispatcher stops. */
int state_check(struct dispatcher *d, int r);
/* Apply and append an event. -EPROTO, -ENOSPC, -ENOMEM as book_apply; -EIO. */
int state_record(struct dispatcher *d, const struct msg *event);
/* The same, and it survives a stop of the machine. */
int state_record_sync(struct dispatcher *d, const struct msg *event);
/* What the worker has not finished is lost, of one job or of all (0); trainers
 * are told. */
int state_lose(struct dispatcher *d, uint64_t job, uint64_t worker);

/* It may come back, and begin anew. */
void state_forget_worker(struct dispatcher *d, uint64_t worker);
/* What is known of a worker that is registered, in this job; NULL: no more fit,
 * which is not so while as many may be registered. */
struct job_worker *state_job_worker(struct dispatcher *d, struct job *j,
				    uint64_t worker);

/* The guest of this role and number; NULL: it is not connected. */
struct guest *state_find(struct dispatcher *d, enum msg_role role, uint64_t id);
void state_tell(struct guest *g, const struct msg *m);
void state_tell_all(struct dispatcher *d, enum msg_role role,
		    const struct msg *m);
/* The trainers that are connected and have brought this job; are there any? */
void state_tell_trainers(struct dispatcher *d, uint64_t job,
			 const struct msg *m);
/* Does the guest read the job? One that is ending does not. */
bool state_is_trainer(const struct guest *g, uint64_t job);
bool state_has_trainers(const struct dispatcher *d, uint64_t job);
struct msg state_epoch_msg(const struct job *j);
/* A worker that is connected again may have missed its splits. */
void state_tell_job(struct guest *worker, const struct job *j);
/* To the trainer of the job; `worker` 0: of all. */
void state_tell_lost(struct dispatcher *d, const struct job *j,
		     uint64_t worker);
struct msg state_task_msg(const struct registered *w, bool there);

#endif
