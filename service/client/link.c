/* SPDX-License-Identifier: MIT */
#include "service/client/link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/units.h"
#include "common/util.h"

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

void link_grant(struct link_worker *w, struct shelf_buffer *b)
{
	push(w, b);
	w->upto++;
}

void link_return_buffers(struct link_worker *w)
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

static uint64_t fill(struct conn *c, uint64_t now)
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
	outbox_init(&w->out);
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
	.fill = fill,
	.apart = apart,
	.ended = ended,
};

/* --- life ----------------------------------------------------------------- */

int link_new(struct links *l, uint64_t id, const char *address,
	     struct link_worker **ret, struct err *err)
{
	struct link_worker *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return err_set(err, -ENOMEM, "out of memory");
	w->all = l;
	w->id = id;
	w->slot = LINK_NO_SLOT;
	w->redial = (struct redial){ .tick = l->tick,
				     .least_ns = LEAST_PAUSE_NS,
				     .most_ns = MOST_PAUSE_NS };
	redial_reset(&w->redial);
	outbox_init(&w->out);
	r = access_find(l->access, address, &w->at, err);
	if (r < 0) {
		link_free(w);
		return r;
	}
	*ret = w;
	return 0;
}

void link_free(struct link_worker *w)
{
	link_return_buffers(w);
	outbox_fini(&w->out);
	addr_fini(&w->at);
	free(w);
}

uint64_t link_dial(struct link_worker *w, uint64_t now)
{
	if (w->conn || w->failed)
		return TICK_NEVER;
	if (now >= w->redial.at &&
	    loop_dial(w->all->loop, &w->at, &worker_ops, w, &w->conn) < 0)
		redial_later(&w->redial);
	return w->conn ? TICK_NEVER : w->redial.at;
}
