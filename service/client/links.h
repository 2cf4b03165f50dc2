/* SPDX-License-Identifier: MIT */
/*
 * The workers that a trainer reads from, and their connections. Buffers are
 * granted to them by turns; each has at most as many batches on its way as it
 * was granted buffers. On the thread of the loop.
 */
#ifndef GPEMU_SERVICE_CLIENT_LINKS_H
#define GPEMU_SERVICE_CLIENT_LINKS_H

#include "net/loop.h"
#include "service/client/shelf.h"
#include "service/proto/access.h"

struct link_worker;

struct links {
	struct loop *loop;
	struct tick *tick;
	const struct access *access;
	struct shelf *shelf;
	uint64_t job, trainer; /* numbers of the job, and of this process */
	struct share share;
	uint32_t consumer; /* of rounds */
	/* private */
	struct link_worker *first, *turn; /* whose turn it is; NULL: the first's
					   */
	uint64_t epoch, seen_turn;
	uint64_t alone_since; /* no worker is there */
	/* of rounds: their workers by turns, NULL: not known yet; and since
	 * when a round is awaited */
	uint64_t *slot;
	uint32_t n_slots;
	uint64_t awaited_since;
	bool stuck;	      /* the worker of the next round is not there */
	struct err unfit;     /* why the last one that cannot, cannot */
	pthread_mutex_t lock; /* of all that links_json reads */
	uint64_t n_added, n_gone, n_skipped;
	struct ends ends;
};

void links_init(struct links *l);
/* After the loop has stopped. */
void links_fini(struct links *l);

/* A worker is there; one that is known already has no effect. A host name is
 * looked up here, and the loop waits for that. */
void links_add(struct links *l, uint64_t id, const char *address);
void links_remove(struct links *l, uint64_t id);
/* The worker cannot do the job. */
void links_failed(struct links *l, uint64_t id, const char *why);
/* Round i is made by worker i modulo their number, as the EPOCH message names
 * them. -EPROTO: there are no rounds; -ENOMEM. */
int links_take_turns(struct links *l, const struct msg *m);
/* Before each round: dial, grant buffers; returns when due again. `wait_ns`: no
 * longer without a worker. */
uint64_t links_round(struct links *l, uint64_t now, uint64_t wait_ns);
/* Any thread: {"workers":[...],"workers_added","workers_gone",
 * "batches_skipped","connections":{}} into a record. -ENOMEM. */
int links_json(struct links *l, json_t *into);

#endif
