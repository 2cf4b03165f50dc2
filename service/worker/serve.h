/* SPDX-License-Identifier: MIT */
/*
 * A worker of a preparation service: it takes splits from the dispatcher, and
 * serves the batches to the trainers of their jobs.
 *
 *	dispatcher --JOB, EPOCH, SPLIT--> task --BATCH--> trainer
 *
 * One thread serves all connections over one emulated network card; each job
 * has a task (service/worker/task.h) with threads of its own. While the
 * dispatcher is gone the tasks go on with the splits that they have, and the
 * worker dials it again.
 */
#ifndef GPEMU_SERVICE_WORKER_SERVE_H
#define GPEMU_SERVICE_WORKER_SERVE_H

#include <jansson.h>

#include "service/proto/access.h"
#include "service/worker/stages.h"

struct serve_config {
	struct tick *tick; /* borrowed, as is all below */
	const struct access *access;
	const struct addr *dispatcher, *listen;
	const char *address;   /* where trainers reach it */
	uint64_t timeout_ns;   /* wall: of messages */
	uint64_t window_bytes; /* of each job that trainers share */
	/* or NULL: called once the dispatcher knows it, on another thread */
	void (*registered)(void);
	struct stages_options options;
};

/* Bytes of an address, so that it fits into the first message (CONN_FIRST). */
enum { SERVE_ADDRESS = 160 };

struct serve;

/* Listens. As addr_listen, with a text. */
int serve_new(const struct serve_config *c, struct serve **ret,
	      struct err *err);
/* Serve until serve_stop. -EPROTO, with a text: the dispatcher refuses
 * it. */
int serve_run(struct serve *s, struct err *err);
/* Any thread: no more splits; end when the trainers have the batches of those
 * that it has, and after `most_ns` of wall time at the latest. */
void serve_drain(struct serve *s, uint64_t most_ns);
void serve_free(struct serve *s);
/* After serve_run. {"batches","batches_made","batches_skipped","made_s",
 * "rounds","round_spread","bytes_sent","jobs","jobs_failed","dispatcher_lost","connections":{}}.
 */
json_t *serve_json(const struct serve *s);

#endif
