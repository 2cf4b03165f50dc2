/* SPDX-License-Identifier: MIT */
/* The state of the links, and one of their workers with its connection, which
 * fills the buffers that it was granted. On the thread of the loop. */
#ifndef GPEMU_SERVICE_CLIENT_LINK_H
#define GPEMU_SERVICE_CLIENT_LINK_H

#include "net/loop.h"
#include "net/redial.h"
#include "service/client/shelf.h"
#include "service/proto/access.h"
#include "service/proto/outbox.h"

/* It makes no rounds. */
#define LINK_NO_SLOT UINT32_MAX

/* Bytes of what is no batch. */
enum { LINK_SMALL = PREPD_HEAD + SEAL_KEY + SEAL_TAG };

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

struct link_worker {
	struct links *all;
	uint64_t id;
	uint32_t slot; /* whose turn it is in rounds */
	struct addr at;
	struct conn *conn; /* NULL: not now */
	struct outbox out;
	bool greeted, failed;
	struct redial redial;
	/* of this connection and epoch: batches received, and those that it
	 * may have sent, for which `reserved` has a buffer each */
	uint64_t have, upto, told_have, told_upto;
	struct shelf_buffer *reserved;
	uint64_t n_reserved;
	bool empty; /* it has no more */
	/* of a job that is shared: the worker's next batch, by its own count,
	 * and whether none came over this connection yet */
	uint64_t next_index;
	bool fresh;
	/* what arrives: a batch, or a small message */
	struct shelf_buffer *receiving;
	unsigned char small[LINK_SMALL];
	/* of a job whose batches are in parcels: their key, and the batch of
	 * the parcel that is next, type 0: none is */
	struct seal_key key;
	bool has_key;
	struct msg head;
	uint64_t n_batches, n_bytes; /* all->lock to write */
	struct link_worker *prev, *next;
};

/* -ENOMEM; else as access_find, with a text. */
int link_new(struct links *l, uint64_t id, const char *address,
	     struct link_worker **ret, struct err *err);
/* It has no connection. */
void link_free(struct link_worker *w);
/* Connect, unless it is; returns when to call again. */
uint64_t link_dial(struct link_worker *w, uint64_t now);
/* One more batch may come, into this buffer. */
void link_grant(struct link_worker *w, struct shelf_buffer *b);
/* It may send no more. */
void link_return_buffers(struct link_worker *w);

#endif
