/* SPDX-License-Identifier: MIT */
#include "service/worker/readers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "common/util.h"
#include "service/proto/outbox.h"

/* A trainer that is connected. */
struct reader {
	struct readers *s;
	struct conn *conn;
	struct outbox out;
	bool met, known; /* its HELLO came; its job is here */
	uint64_t trainer;
	uint32_t consumer; /* that it is */
	uint64_t job;	   /* 0: no READ yet */
	uint64_t epoch;
	uint64_t base; /* number of the first batch of this connection */
	/* of a job that is shared, instead: where it is */
	struct sweep_reader place;
	bool has_key;
	uint64_t sent, upto; /* of this connection and epoch */
	uint64_t granted_ns; /* when it could send again */
	bool empty;	     /* EMPTY was sent in this epoch */
	struct reader *prev, *next;
};

/* Its connections before this one. */
static void end_others(struct readers *s, const struct reader *r)
{
	struct reader *other;

	DL_FOREACH (s->first, other) {
		if (other != r && other->job == r->job &&
		    other->trainer == r->trainer)
			conn_end(other->conn, -ECONNRESET);
	}
}

/* Of a job. arbitrary: more trainers than share one */
enum { READERS_MOST = LOOP_CONNS / 4 };

static bool has_enough(const struct readers *s, uint64_t job)
{
	const struct reader *r;
	uint32_t n = 0;

	DL_FOREACH (s->first, r) {
		n += r->job == job;
	}
	return n > READERS_MOST;
}

/* The first READ of an epoch: what the trainer has not acknowledged is sent,
 * maybe again. */
static void begin(struct reader *r, const struct task *t, const struct msg *m)
{
	r->epoch = m->epoch;
	/* of a shared job the trainer knows, of another this worker */
	r->base = m->c;
	if (t && task_in_epoch(t, m->epoch))
		r->base = MAX(r->base, task_acked(t, r->consumer));
	r->sent = 0;
	r->empty = false;
}

static int take_read(struct reader *r, const struct msg *m, uint64_t now)
{
	struct task *t = r->s->find(r->s->ctx, m->job);
	bool first = !r->job;

	if (!m->job || (r->job && r->job != m->job) ||
	    (t && r->consumer >= task_consumers(t)))
		return -EPROTO;
	r->job = m->job;
	if (first) {
		end_others(r->s, r);
		if (has_enough(r->s, r->job))
			return -EMFILE;
		r->place =
			(struct sweep_reader){ .next = m->c, .n_read = m->c };
	}
	if (first || r->epoch != m->epoch)
		begin(r, t, m);
	if (m->a > r->sent || m->b < m->a)
		return -EPROTO;
	if (r->sent == r->upto) /* else it was granted before */
		r->granted_ns = now;
	r->upto = m->b;
	if (!t || !task_in_epoch(t, m->epoch) || task_is_shared(t))
		return 0;
	return task_ack(t, r->consumer, r->base + m->a);
}

static int from_trainer(struct conn *c, unsigned char *bytes, size_t n,
			uint64_t now)
{
	struct reader *r = c->user;
	struct msg m;
	int code = msg_decode(bytes, n, &m);

	if (code < 0)
		return code;
	if (r->met)
		return m.type == PREPD_READ ? take_read(r, &m, now) : -EPROTO;
	if (m.type != PREPD_HELLO || m.role != PREPD_READER)
		return -EPROTO;
	r->met = true;
	r->trainer = m.id;
	r->consumer = m.count;
	return 0;
}

static struct msg batch_msg(const struct reader *r, const struct task_batch *b,
			    uint64_t now)
{
	const struct delivery *d = &b->d;

	return (struct msg){
		.type = b->parcel ? PREPD_SHARED : PREPD_BATCH,
		.job = r->job,
		.epoch = r->epoch,
		.a = r->sent,
		.split = b->split,
		.c = b->position,
		.count = d->n,
		.share = (uint32_t)(d->read_share * 1e6),
		.id = now - MIN(d->complete_ns, now),
		.b = b->starved_ns,
	};
}

/* The samples are copied once, to be sealed. */
static int send_batch(struct reader *r, const struct task_batch *b,
		      uint64_t ready, uint64_t now)
{
	const struct msg m = batch_msg(r, b, now);
	const struct delivery *d = &b->d;
	size_t n_head = msg_batch_head(d->n);
	struct readers *s = r->s;

	if (util_reserve_anew(&s->head, &s->head_room, n_head, 1) < 0 ||
	    util_reserve_anew(&s->piece, &s->piece_room, d->n + 1,
			      sizeof(*s->piece)) < 0)
		return -ENOMEM;
	memset(s->head, 0, n_head);
	msg_encode(&m, s->head);
	s->piece[0] = (struct iovec){ s->head, n_head };
	for (uint32_t i = 0; i < d->n; i++) {
		const struct place *p = &d->place[i];
		const struct msg_sample one = { p->sample, p->error, p->n,
						p->bypassed };

		msg_batch_put(s->head + PREPD_HEAD, i, &one);
		s->piece[1 + i] =
			(struct iovec){ (void *)(uintptr_t)p->data, p->n };
	}
	return conn_send_pieces(r->conn, s->piece, d->n + 1, ready);
}

/* They are sealed already, once for all trainers: this one's is the head. */
static int send_parcel(struct reader *r, const struct task_batch *b,
		       uint64_t ready, uint64_t now)
{
	const struct msg m = batch_msg(r, b, now);
	unsigned char head[PREPD_HEAD];

	msg_encode(&m, head);
	return conn_send_parcel(r->conn, head, sizeof(head), b->parcel, ready);
}

/* Before the first parcel. Not by the outbox, which leaves copies. */
static void send_key(struct reader *r, const struct task *t, uint64_t now)
{
	const struct msg m = { .type = PREPD_KEY, .job = r->job };
	unsigned char head[PREPD_HEAD];
	int code;

	msg_encode(&m, head);
	code = conn_send(r->conn, head, sizeof(head), task_key(t)->bytes,
			 SEAL_KEY, now);
	if (code < 0)
		conn_end(r->conn, code);
	r->has_key = true;
}

/* Its first bit arrives one latency after the batch is complete, and two after
 * the trainer had room for it. */
static uint64_t leaves(const struct reader *r, const struct task_batch *b)
{
	uint64_t asked = loop_leaves(r->s->loop, r->granted_ns);

	return loop_leaves(r->s->loop, MAX(asked, b->d.complete_ns));
}

/* The next batch for it, which is at place *at; NULL: not now. */
static const struct task_batch *
next_batch(const struct reader *r, struct task *t, struct sweep_reader *at)
{
	*at = r->place;
	if (r->sent >= r->upto)
		return NULL;
	return task_is_shared(t)
		       ? task_shared(t, at)
		       : task_batch(t, r->consumer, r->base + r->sent);
}

static uint64_t fill_batches(struct reader *r, struct task *t, uint64_t now)
{
	struct msg empty = { .type = PREPD_EMPTY,
			     .job = r->job,
			     .epoch = r->epoch,
			     .a = r->sent };
	struct sweep_reader place;
	const struct task_batch *b = next_batch(r, t, &place);
	uint64_t at;
	int code;

	if (!b) {
		if (!r->empty && task_is_empty(t, r->base + r->sent)) {
			r->empty = true;
			outbox_put(&r->out, r->conn, &empty);
			outbox_fill(&r->out, r->conn, now);
		}
		return TICK_NEVER;
	}
	at = leaves(r, b);
	if (now < at)
		return at;
	code = b->parcel ? send_parcel(r, b, at, now)
			 : send_batch(r, b, at, now);
	if (code < 0) {
		conn_end(r->conn, code);
		return TICK_NEVER;
	}
	r->sent++;
	r->s->n_batches++;
	r->s->n_skipped += place.n_skipped - r->place.n_skipped;
	r->place = place;
	conn_kick(r->conn); /* others may wait for the batch that it made */
	return now;
}

static uint64_t fill_trainer(struct conn *c, uint64_t now)
{
	struct reader *r = c->user;
	struct task *t = r->job ? r->s->find(r->s->ctx, r->job) : NULL;

	/* A HELLO is of anybody who has the key: one that reads nothing makes
	 * room for others. The READ may come before the job does. */
	if (t && !r->known) {
		r->known = true;
		conn_trust(c, CONN_FIRST);
	}
	if (outbox_fill(&r->out, c, now))
		return now;
	if (!t || !task_in_epoch(t, r->epoch))
		return TICK_NEVER;
	if (r->consumer >= task_consumers(t)) {
		conn_end(c, -EPROTO);
		return TICK_NEVER;
	}
	if (task_is_shared(t) && !r->has_key) {
		send_key(r, t, now);
		return now;
	}
	/* others may wait for its request */
	if (task_request(t, r->consumer, r->base + r->upto))
		conn_kick(c);
	return fill_batches(r, t, now);
}

static void trainer_ended(struct conn *c, int why)
{
	struct reader *r = c->user;

	ends_count(r->s->ends, why);
	DL_DELETE(r->s->first, r);
	outbox_fini(&r->out);
	free(r);
}

static const struct conn_ops reader_ops = {
	.message = from_trainer,
	.fill = fill_trainer,
	.ended = trainer_ended,
};

int readers_accept(struct readers *s, struct conn *c)
{
	struct reader *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->s = s;
	r->conn = c;
	outbox_init(&r->out);
	c->ops = &reader_ops;
	c->user = r;
	DL_APPEND(s->first, r);
	return 0;
}

void readers_end(struct readers *s, uint64_t job)
{
	struct reader *r;

	DL_FOREACH (s->first, r) {
		if (r->job == job)
			conn_end(r->conn, -ECONNRESET);
	}
}

void readers_fini(struct readers *s)
{
	free(s->head);
	free(s->piece);
}
