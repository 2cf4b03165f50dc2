/* SPDX-License-Identifier: MIT */
#include "service/client/links.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "common/json.h"
#include "common/log.h"
#include "common/thread.h"
#include "common/units.h"
#include "common/util.h"
#include "net/redial.h"
#include "net/wire.h"
#include "service/proto/outbox.h"

/*
 * --- a link ---------------------------------------------------------------
 *
 * A worker with its connection, which fills the buffers that it was granted.
 */

/* It makes no rounds. */
#define LINK_NO_SLOT UINT32_MAX

/* Bytes of what is no batch. */
enum { LINK_SMALL = PREPD_HEAD + SEAL_KEY + SEAL_TAG };

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

/* Wall times. arbitrary: a lost connection is back soon */
#define LEAST_PAUSE_NS (50 * NS_PER_MS)
#define MOST_PAUSE_NS (1 * NS_PER_S)

/* --- buffers -------------------------------------------------------------- */

static struct shelf_buffer *pop(struct link_worker *w)
{
	struct shelf_buffer *b = w->reserved;

	if (b) {
		w->reserved = b->next;
		w->n_reserved--;
	}
	return b;
}

static void push(struct link_worker *w, struct shelf_buffer *b)
{
	b->next = w->reserved;
	w->reserved = b;
	w->n_reserved++;
}

/* One more batch may come, into this buffer. */
static void link_grant(struct link_worker *w, struct shelf_buffer *b)
{
	push(w, b);
	w->upto++;
}

/* It may send no more. */
static void link_return_buffers(struct link_worker *w)
{
	struct shelf_buffer *b;

	while ((b = pop(w)))
		shelf_free(w->all->shelf, b);
	w->upto = w->have;
}

/* The buffer of a batch that is not for the consumer. */
static void put_back(struct link_worker *w, struct shelf_buffer *b)
{
	if (w->n_reserved < w->upto - w->have)
		push(w, b);
	else
		shelf_free(w->all->shelf, b);
}

/* --- messages ------------------------------------------------------------- */

static unsigned char *apart(struct conn *c, size_t n)
{
	struct link_worker *w = c->user;

	if (n <= sizeof(w->small) && !w->head.type)
		return w->small;
	w->receiving = pop(w);
	/* of the epoch before, or of a worker that failed: not granted now */
	if (!w->receiving)
		w->receiving = shelf_reserve(w->all->shelf);
	if (!w->receiving)
		return NULL;
	w->receiving->begun_ns = tick_now(w->all->tick);
	if (!w->head.type)
		return w->receiving->bytes;
	msg_encode(&w->head, w->receiving->bytes);
	return w->receiving->bytes + PREPD_HEAD;
}

/* This consumer ended, and came again; the others, and the worker, have not
 * begun anew. */
static void fail_late(const struct links *l)
{
	shelf_fail(l->shelf, -EIO,
		   "consumer %u has joined again after the first rounds of its "
		   "job: end the other consumers and start all of them",
		   l->consumer);
}

/*
 * Of a job that is shared: m->c is the number of the batch in its worker's
 * count, and of a round becomes that of all. Batches that were dropped are
 * missing in it. A worker that begins anew, as the job is new to it, counts
 * from 0.
 */
static int take_place(struct link_worker *w, struct msg *m, uint64_t now)
{
	struct links *l = w->all;
	bool again = m->c < w->next_index;
	bool rounds = l->share.how == SHARE_ROUNDS;

	if (l->share.how == SHARE_NONE)
		return 0;
	if (rounds && w->fresh && m->c > w->next_index)
		fail_late(l);
	if (rounds ? w->slot == LINK_NO_SLOT || m->c != w->next_index
		   : again && !w->fresh)
		return -EPROTO;
	pthread_mutex_lock(&l->lock);
	if (w->next_index && !again)
		l->n_skipped += m->c - w->next_index;
	pthread_mutex_unlock(&l->lock);
	w->next_index = m->c + 1;
	w->fresh = false;
	l->awaited_since = now;
	if (rounds)
		m->c = m->c * l->n_slots + w->slot;
	return 0;
}

static int take_batch(struct link_worker *w, const struct msg *m, size_t n,
		      uint64_t now)
{
	struct links *l = w->all;
	struct shelf_buffer *b = TAKE_PTR(w->receiving);
	int r = 0;

	conn_kick(w->conn);
	b->m = *m;
	b->arrived_ns = MAX(now, b->begun_ns); /* `now` is of the round */
	if (m->epoch == l->epoch && m->a != w->have++)
		r = -EPROTO;
	w->upto = MAX(w->upto, w->have); /* of one that failed */
	if (r == 0)
		r = take_place(w, &b->m, now);
	if (r == 0)
		r = shelf_put(l->shelf, b);
	pthread_mutex_lock(&l->lock);
	w->n_batches += r == 0;
	w->n_bytes += n;
	pthread_mutex_unlock(&l->lock);
	if (r < 0)
		put_back(w, b);
	return r == -EPROTO ? r : 0;
}

/* The rest of the batch that was announced, behind its head. */
static int take_parcel(struct link_worker *w, unsigned char *rest, size_t n,
		       uint64_t now)
{
	int r = seal_open_common(&w->key, w->all->job, w->head.c, rest, n);
	size_t bytes = PREPD_HEAD + n - SEAL_TAG;
	struct msg m;

	w->head.type = 0;
	if (r == 0)
		r = msg_decode(w->receiving->bytes, bytes, &m);
	return r < 0 ? r : take_batch(w, &m, bytes, now);
}

static int take_key(struct link_worker *w, const struct msg *m)
{
	if (w->all->share.how != SHARE_WINDOW)
		return -EPROTO;
	memcpy(w->key.bytes, m->rest, sizeof(w->key.bytes));
	seal_forget(w->small, sizeof(w->small));
	w->has_key = true;
	return 0;
}

/* The head of a batch: its number is that of the parcel behind it. */
static int take_head(struct link_worker *w, const struct msg *m)
{
	if (!w->has_key)
		return -EPROTO;
	w->head = *m;
	w->head.type = PREPD_BATCH;
	conn_expect_parcel(w->conn, w->all->shelf->bytes - PREPD_HEAD);
	return 0;
}

static int take_empty(struct link_worker *w, const struct msg *m)
{
	if (m->epoch == w->all->epoch) {
		w->empty = true;
		link_return_buffers(w);
		w->told_upto = w->upto;
		conn_kick(w->conn);
	}
	return 0;
}

static int message(struct conn *c, unsigned char *bytes, size_t n, uint64_t now)
{
	struct link_worker *w = c->user;
	struct msg m;
	int r;

	if (w->head.type)
		return take_parcel(w, bytes, n, now);
	r = msg_decode(bytes, n, &m);
	if (r < 0)
		return r;
	if (m.job != w->all->job)
		return -EPROTO;
	if (w->receiving)
		return m.type == PREPD_BATCH ? take_batch(w, &m, n, now)
					     : -EPROTO;
	switch (m.type) {
	case PREPD_EMPTY: return take_empty(w, &m);
	case PREPD_KEY: return take_key(w, &m);
	case PREPD_SHARED: return take_head(w, &m);
	default: return -EPROTO;
	}
}

static uint64_t fill_link(struct conn *c, uint64_t now)
{
	struct link_worker *w = c->user;
	struct msg hello = { .type = PREPD_HELLO,
			     .role = PREPD_READER,
			     .id = w->all->trainer,
			     .count = w->all->consumer,
			     .job = w->all->job };

	if (!w->greeted) {
		w->greeted = w->fresh = true;
		redial_reset(&w->redial);
		/* the worker says nothing before a READ */
		conn_trust(c, w->all->shelf->bytes - SEAL_TAG);
		outbox_put(&w->out, c, &hello);
	}
	outbox_fill(&w->out, c, now);
	return TICK_NEVER;
}

/* It sends what does not belong to this job, or what no buffer can hold: again
 * and again, if it were dialed again. */
static bool is_wrong(int why)
{
	return why == -EPROTO || why == -EMSGSIZE;
}

static void ended(struct conn *c, int why)
{
	struct link_worker *w = c->user;
	struct links *l = w->all;

	w->conn = NULL;
	w->greeted = false;
	outbox_fini(&w->out);
	if (w->receiving)
		shelf_free(l->shelf, TAKE_PTR(w->receiving));
	link_return_buffers(w);
	w->have = w->upto = w->told_have = w->told_upto = 0;
	w->head.type = 0;
	w->has_key = false;
	seal_forget(&w->key, sizeof(w->key));
	if (why == -ECANCELED)
		return;
	pthread_mutex_lock(&l->lock);
	ends_count(&l->ends, why);
	pthread_mutex_unlock(&l->lock);
	if (is_wrong(why))
		shelf_fail(l->shelf, -EPROTO,
			   "worker %s: sent data that does not belong to this "
			   "job: %s",
			   w->at.text, strerror(-why));
	redial_later(&w->redial);
}

static const struct conn_ops worker_ops = {
	.message = message,
	.fill = fill_link,
	.apart = apart,
	.ended = ended,
};

/* --- life ----------------------------------------------------------------- */

/* It has no connection. */
static void link_free(struct link_worker *w)
{
	link_return_buffers(w);
	outbox_fini(&w->out);
	addr_fini(&w->at);
	free(w);
}

/* -ENOMEM; else as access_find, with a text. */
static int link_new(struct links *l, uint64_t id, const char *address,
		    struct link_worker **ret, struct err *err)
{
	struct link_worker *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return err_set(err, -ENOMEM, "out of memory");
	w->all = l;
	w->id = id;
	w->slot = LINK_NO_SLOT;
	redial_init(&w->redial, l->tick, LEAST_PAUSE_NS, MOST_PAUSE_NS);
	outbox_init(&w->out);
	r = access_find(l->access, address, &w->at, err);
	if (r < 0) {
		link_free(w);
		return r;
	}
	*ret = w;
	return 0;
}

/* Connect, unless it is; returns when to call again. */
static uint64_t link_dial(struct link_worker *w, uint64_t now)
{
	if (w->conn || w->failed)
		return TICK_NEVER;
	if (now >= w->redial.at &&
	    loop_dial(w->all->loop, &w->at, &worker_ops, w, &w->conn) < 0)
		redial_later(&w->redial);
	return w->conn ? TICK_NEVER : w->redial.at;
}

/* --- turns ---------------------------------------------------------------- */

static bool may_have(const struct link_worker *w)
{
	return w->greeted && !w->failed && !w->empty;
}

/* The worker whose turn it is; NULL: none can make use of a buffer. */
static struct link_worker *next_worker(struct links *l)
{
	struct link_worker *first = l->turn ? l->turn : l->first, *w = first;

	while (w) {
		struct link_worker *after = w->next ? w->next : l->first;

		if (may_have(w)) {
			l->turn = after;
			return w;
		}
		w = after == first ? NULL : after;
	}
	return NULL;
}

/* The first round that was not granted to the worker. */
static uint64_t round_of(const struct link_worker *w)
{
	return (w->next_index + w->upto - w->have) * w->all->n_slots + w->slot;
}

/* The worker that makes the first round that was not granted; NULL: it is not
 * there, and no later one helps. */
static struct link_worker *next_round(struct links *l)
{
	struct link_worker *w, *first = NULL;
	uint32_t n = 0;

	DL_FOREACH (l->first, w) {
		if (w->slot == LINK_NO_SLOT)
			continue;
		n++;
		if (!first || round_of(w) < round_of(first))
			first = w;
	}
	return n && n == l->n_slots && may_have(first) ? first : NULL;
}

/* What was received, so that the worker may reuse its memory, and granted. */
static void tell(struct links *l)
{
	struct link_worker *w;

	DL_FOREACH (l->first, w) {
		struct msg m = { .type = PREPD_READ,
				 .job = l->job,
				 .epoch = l->epoch,
				 .a = w->have,
				 .b = w->upto,
				 .c = w->next_index };

		if (!w->greeted ||
		    (w->told_have == w->have && w->told_upto == w->upto))
			continue;
		outbox_put(&w->out, w->conn, &m);
		w->told_have = w->have;
		w->told_upto = w->upto;
	}
}

static uint64_t n_granted(const struct links *l)
{
	const struct link_worker *w;
	uint64_t n = 0;

	DL_FOREACH (l->first, w) {
		n += w->upto - w->have;
	}
	return n;
}

/* Grant the free buffers that the epoch needs, by turns. Returns whether one
 * is left, as no worker can take it. */
static bool grant(struct links *l)
{
	uint64_t granted = n_granted(l);
	struct link_worker *w = NULL;
	struct shelf_buffer *b = NULL;

	while (shelf_needs(l->shelf, granted) &&
	       (b = shelf_reserve(l->shelf))) {
		w = l->share.how == SHARE_ROUNDS ? next_round(l)
						 : next_worker(l);
		if (!w) {
			shelf_free(l->shelf, b);
			break;
		}
		link_grant(w, b);
		granted++;
	}
	tell(l);
	return b && !w;
}

/* --- workers -------------------------------------------------------------- */

void links_init(struct links *l)
{
	pthread_mutex_init(&l->lock, NULL);
	l->alone_since = tick_now(l->tick);
}

static struct link_worker *find_worker(const struct links *l, uint64_t id)
{
	struct link_worker *w;

	DL_SEARCH_SCALAR(l->first, w, id, id);
	return w;
}

static uint32_t slot_of(const struct links *l, uint64_t id)
{
	for (uint32_t i = 0; i < l->n_slots; i++)
		if (l->slot[i] == id)
			return i;
	return LINK_NO_SLOT;
}

int links_take_turns(struct links *l, const struct msg *m)
{
	struct wire wire = { .at = m->rest, .left = m->n_rest };
	uint32_t n = (uint32_t)(m->n_rest / 8);
	_cleanup_free_ uint64_t *slot = calloc(n + 1, sizeof(*slot));
	struct link_worker *w;

	if (l->share.how != SHARE_ROUNDS)
		return -EPROTO;
	if (!slot)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		slot[i] = wire_get(&wire, 8);
	if (l->slot &&
	    (n != l->n_slots || memcmp(slot, l->slot, n * sizeof(*slot)) != 0))
		shelf_fail(l->shelf, -EIO,
			   "the workers of this job's rounds have changed");
	if (l->slot)
		return 0;
	l->slot = TAKE_PTR(slot);
	l->n_slots = n;
	DL_FOREACH (l->first, w) {
		w->slot = slot_of(l, w->id);
		if (w->failed && w->slot != LINK_NO_SLOT)
			shelf_fail(l->shelf, -EIO, "worker %s", l->unfit.text);
	}
	return 0;
}

static void forget(struct links *l, struct link_worker *w)
{
	if (l->turn == w)
		l->turn = NULL;
	pthread_mutex_lock(&l->lock);
	DL_DELETE(l->first, w);
	pthread_mutex_unlock(&l->lock);
	link_free(w);
}

void links_fini(struct links *l)
{
	while (l->first)
		forget(l, l->first);
	free(l->slot);
	pthread_mutex_destroy(&l->lock);
}

void links_add(struct links *l, uint64_t id, const char *address)
{
	struct link_worker *w = NULL;
	struct err err = { 0 };

	if (find_worker(l, id))
		return;
	if (link_new(l, id, address, &w, &err) < 0) {
		log_warn("worker %s: skipped: %s", address, err.text);
		return;
	}
	w->slot = slot_of(l, id);
	LOCK_SCOPE(&l->lock);
	DL_APPEND(l->first, w);
	l->n_added++;
}

void links_remove(struct links *l, uint64_t id)
{
	struct link_worker *w = find_worker(l, id);

	if (!w)
		return;
	log_warn("worker %s is no longer available", w->at.text);
	if (w->slot != LINK_NO_SLOT)
		shelf_fail(
			l->shelf, -EIO,
			"worker %s, which makes rounds, is no longer available",
			w->at.text);
	/* `ended` is called later: the worker waits for it */
	w->failed = true;
	w->id = 0;
	pthread_mutex_lock(&l->lock);
	l->n_gone++;
	pthread_mutex_unlock(&l->lock);
	link_return_buffers(w);
	if (w->conn)
		conn_end(w->conn, -ECONNRESET);
}

void links_failed(struct links *l, uint64_t id, const char *why)
{
	struct link_worker *w = find_worker(l, id);

	if (!w || w->failed)
		return;
	log_warn("worker %s cannot do this job: %s", w->at.text, why);
	snprintf(l->unfit.text, sizeof(l->unfit.text), "%s: %s", w->at.text,
		 why);
	w->failed = true;
	link_return_buffers(w);
	if (w->slot != LINK_NO_SLOT)
		shelf_fail(l->shelf, -EIO, "worker %s", l->unfit.text);
}

/* --- rounds --------------------------------------------------------------- */

/* Batches have numbers from 0 again. */
static void turn_epoch(struct links *l, uint64_t now)
{
	struct link_worker *w;
	bool turned;

	pthread_mutex_lock(&l->shelf->lock);
	turned = l->seen_turn != l->shelf->turn;
	l->seen_turn = l->shelf->turn;
	l->epoch = l->shelf->sweep.epoch;
	pthread_mutex_unlock(&l->shelf->lock);
	if (!turned)
		return;
	l->awaited_since = now;
	DL_FOREACH (l->first, w) {
		link_return_buffers(w);
		w->have = w->upto = w->told_have = w->told_upto = 0;
		w->empty = false;
	}
}

/* Another consumer that asks for no more rounds would be awaited for good, and
 * so would the worker of the next one, which cannot be reached if `stuck`.
 * Returns when it is too late. */
static uint64_t await_round(struct links *l, bool stuck, uint64_t now,
			    uint64_t wait_ns)
{
	bool waits = stuck || n_granted(l);

	if (l->share.how != SHARE_ROUNDS || !shelf_is_open(l->shelf))
		return TICK_NEVER;
	if (!waits || stuck != l->stuck)
		l->awaited_since = now;
	l->stuck = stuck;
	if (now < l->awaited_since + wait_ns)
		return l->awaited_since + wait_ns;
	shelf_fail(l->shelf, -ETIMEDOUT,
		   "no round arrived: are all %u consumers and all workers "
		   "running?",
		   l->share.consumers);
	return TICK_NEVER;
}

uint64_t links_round(struct links *l, uint64_t now, uint64_t wait_ns)
{
	uint64_t due = TICK_NEVER, until;
	struct link_worker *w, *after;
	bool alone = true, able = false, unfit = false;

	turn_epoch(l, now);
	DL_FOREACH_SAFE (l->first, w, after) {
		uint64_t at = link_dial(w, now);

		due = MIN(due, at);
		alone = alone && !(w->greeted && !w->failed);
		able = able || !w->failed;
		unfit = unfit || (w->failed && w->id);
		if (!w->id && !w->conn)
			forget(l, w);
	}
	until = await_round(l, grant(l) && !n_granted(l), now, wait_ns);
	due = MIN(due, until);
	if (!alone || !shelf_is_open(l->shelf)) {
		l->alone_since = now;
		return due;
	}
	if (unfit && !able)
		shelf_fail(l->shelf, -EIO, "no worker can do this job; %s",
			   l->unfit.text);
	until = l->alone_since + wait_ns;
	if (now >= until) {
		shelf_fail(l->shelf, -ETIMEDOUT,
			   "no worker is connected: start gpemu-prepd worker");
		return due;
	}
	return MIN(due, until);
}

int links_json(struct links *l, json_t *into)
{
	json_t *workers = json_array();
	json_auto_t *j = NULL;
	struct link_worker *w;

	LOCK_SCOPE(&l->lock);
	DL_FOREACH (l->first, w) {
		json_array_append_new(
			workers, json_pack("{s:o, s:I, s:I}", "address",
					   json_bytes(w->at.text), "batches",
					   (json_int_t)w->n_batches, "bytes",
					   (json_int_t)w->n_bytes));
	}
	j = json_pack("{s:o, s:I, s:I, s:I, s:o}", "workers", workers,
		      "workers_added", (json_int_t)l->n_added, "workers_gone",
		      (json_int_t)l->n_gone, "batches_skipped",
		      (json_int_t)l->n_skipped, "connections",
		      ends_json(&l->ends));
	return j && json_object_update(into, j) == 0 ? 0 : -ENOMEM;
}
