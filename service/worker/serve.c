/* SPDX-License-Identifier: MIT */
#include "service/worker/serve.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <utlist.h>

#include "common/log.h"
#include "common/thread.h"
#include "common/units.h"
#include "common/util.h"
#include "net/loop.h"
#include "net/redial.h"
#include "service/core/book.h"
#include "service/proto/outbox.h"
#include "service/worker/task.h"

/*
 * --- readers --------------------------------------------------------------
 *
 * The trainers that are connected to a worker, and what is sent to them. On the
 * thread of its loop.
 */

struct readers {
	struct loop *loop;
	struct ends *ends;
	/* The task of a job; NULL: it is not here. */
	struct task *(*find)(void *ctx, uint64_t job);
	void *ctx;
	uint64_t n_batches; /* sent */
	uint64_t n_skipped; /* left their window before a trainer read them */
	/* private */
	struct reader *first;
	unsigned char *head; /* of the batch that is being sent */
	struct iovec *piece;
	size_t head_room, piece_room;
};

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
static void begin_reader(struct reader *r, const struct task *t,
			 const struct msg *m)
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
		begin_reader(r, t, m);
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

/* For `accepted` of struct loop_config. -ENOMEM. */
static int readers_accept(struct readers *s, struct conn *c)
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

/* The task of the job is gone: end the connections that read it. */
static void readers_end(struct readers *s, uint64_t job)
{
	struct reader *r;

	DL_FOREACH (s->first, r) {
		if (r->job == job)
			conn_end(r->conn, -ECONNRESET);
	}
}

/* After their connections have ended. */
static void readers_fini(struct readers *s)
{
	free(s->head);
	free(s->piece);
}

/* Wall times. arbitrary: a dispatcher that starts again is found soon */
#define LEAST_PAUSE_NS (100 * NS_PER_MS)
#define MOST_PAUSE_NS (2 * NS_PER_S)
/* A dispatcher that knows nothing of a job may hear of it from the trainer.
 * arbitrary: far longer than that one's pauses */
#define STRAY_NS (30 * NS_PER_S)

/* A job here. */
struct post {
	struct task *task;
	uint64_t stray_at; /* the dispatcher must know it by then */
	bool dropped, failed;
	struct post *prev, *next;
};

struct serve {
	struct serve_config c;
	uint64_t id;
	struct loop *loop;
	/* of the thread of the loop */
	struct conn *conn; /* to the dispatcher; NULL: not now */
	struct outbox out;
	bool greeted, welcome, told, registered;
	bool leaving, left; /* it told the dispatcher; that one agrees */
	struct redial redial;
	uint64_t beat_at, beat_ns;
	struct post *posts;
	struct readers readers;
	struct task_totals totals;
	uint64_t n_jobs, n_failed, n_lost;
	struct ends ends;
	pthread_mutex_t lock;
	pthread_cond_t over;
	bool stopping;	      /* lock */
	uint64_t drain_until; /* lock; TICK_NEVER: it does not drain */
	struct err err;	      /* lock */
};

static void stop(struct serve *s, const char *why)
{
	LOCK_SCOPE(&s->lock);
	s->stopping = true;
	if (why)
		err_set(&s->err, -EPROTO, "%s", why);
	pthread_cond_signal(&s->over);
}

/* --- jobs ----------------------------------------------------------------- */

static struct post *find_post(const struct serve *s, uint64_t job)
{
	struct post *p;

	DL_FOREACH (s->posts, p) {
		if (task_job(p->task) == job && !p->dropped)
			return p;
	}
	return NULL;
}

static void changed(void *ctx)
{
	struct serve *s = ctx;

	loop_wake(s->loop);
}

static void drop(struct serve *s, struct post *p)
{
	p->dropped = true;
	task_stop(p->task);
	readers_end(&s->readers, task_job(p->task));
}

static int take_job(struct serve *s, const struct msg *m)
{
	_cleanup_free_ char *definition = msg_text(m);
	struct task_config c = { .job = m->job,
				 .number = m->id,
				 .worker = s->id,
				 .definition = definition,
				 .mode = (enum split_mode)m->role,
				 .batch = m->count,
				 .per_split = m->split,
				 .share = { (enum share_how)m->share,
					    (uint32_t)m->b, m->a },
				 .window_bytes = s->c.window_bytes,
				 .totals = &s->totals,
				 .options = &s->c.options,
				 .tick = s->c.tick,
				 .changed = changed,
				 .ctx = s };
	struct post *p = find_post(s, m->job);
	uint32_t n;
	int r;

	if (!book_job_fits(m))
		return -EPROTO;
	if (!definition)
		return -ENOMEM;
	if (p && !task_does(p->task, &c)) { /* its name is used again */
		drop(s, p);
		p = NULL;
	}
	if (p) {
		p->stray_at = TICK_NEVER;
		task_tell_again(p->task);
		return 0;
	}
	DL_COUNT(s->posts, p, n);
	if (n >= 2 * BOOK_JOBS)
		return -ENOMEM;
	p = calloc(1, sizeof(*p));
	r = p ? task_new(&c, &p->task) : -ENOMEM;
	if (r < 0) {
		free(p);
		return r;
	}
	p->stray_at = TICK_NEVER;
	s->n_jobs++;
	DL_APPEND(s->posts, p);
	return 0;
}

/* Report what failed; free what has ended. */
static void look_at(struct serve *s, struct post *p)
{
	_cleanup_free_ char *why = s->welcome ? task_failure(p->task) : NULL;
	struct msg m = { .type = PREPD_FAILED,
			 .job = task_job(p->task),
			 .rest = why };

	if (why && !p->dropped) {
		if (!p->failed)
			log_warn("a job failed: %s", why);
		s->n_failed += !p->failed;
		p->failed = true;
		m.n_rest = strlen(why);
		outbox_put(&s->out, s->conn, &m);
	}
	if (!p->dropped || !task_is_over(p->task))
		return;
	DL_DELETE(s->posts, p);
	task_free(p->task);
	free(p);
}

static void want(struct serve *s, struct post *p)
{
	struct msg m = { .type = PREPD_WANT, .job = task_job(p->task) };

	if (!s->welcome || p->dropped)
		return;
	m.count = task_wants(p->task, &m.epoch);
	if (m.count)
		outbox_put(&s->out, s->conn, &m);
}

/* --- the dispatcher ------------------------------------------------------- */

/* A dispatcher that gave this worker up, or knows nothing of it, gives its
 * splits to others or counts them as lost: it begins anew. Batches without
 * splits are nobody else's. */
static void take_welcome(struct serve *s, const struct msg *m, uint64_t now)
{
	struct post *p;

	conn_trust(s->conn, PREPD_MOST);
	s->welcome = true;
	conn_await(s->conn, true, now);
	s->beat_ns =
		MAX(tick_emulated(s->c.tick, MIN(m->a, s->c.timeout_ns) / 3),
		    tick_emulated(s->c.tick, LEAST_BEAT_NS));
	s->beat_at = now;
	redial_reset(&s->redial);
	DL_FOREACH (s->posts, p) {
		if (!m->count && !p->dropped && task_has_splits(p->task))
			drop(s, p);
		task_forget(p->task);
		p->stray_at = now + tick_emulated(s->c.tick, STRAY_NS);
	}
	if (!s->registered && s->c.registered)
		s->c.registered();
	s->registered = true;
	if (s->told)
		log_info("the dispatcher is back");
	s->told = false;
}

static int take_refusal(struct serve *s, const struct msg *m)
{
	_cleanup_free_ char *why = msg_text(m);

	stop(s, why ? why : "refused");
	return -EPROTO;
}

static int from_dispatcher(struct conn *c, unsigned char *bytes, size_t n,
			   uint64_t now)
{
	struct serve *s = c->user;
	struct post *p;
	struct msg m;
	int r = msg_decode(bytes, n, &m);

	if (r < 0)
		return r;
	conn_kick(c); /* the next round may ask for splits */
	if (m.type == PREPD_REFUSE)
		return take_refusal(s, &m);
	if (!s->welcome) {
		if (m.type != PREPD_WELCOME)
			return -EPROTO;
		take_welcome(s, &m, now);
		return 0;
	}
	if (m.type == PREPD_JOB)
		return take_job(s, &m);
	if (m.type == PREPD_BEAT)
		return 0;
	if (m.type == PREPD_LEAVE) {
		s->left = true;
		return 0;
	}
	p = find_post(s, m.job);
	if (!p)
		return 0;
	switch (m.type) {
	case PREPD_EPOCH: task_epoch(p->task, m.epoch, m.a); return 0;
	case PREPD_SPLIT: return task_split(p->task, m.epoch, m.split);
	case PREPD_NONE: task_none(p->task, m.epoch); return 0;
	case PREPD_DROP: drop(s, p); return 0;
	default: return -EPROTO;
	}
}

static uint64_t fill_dispatcher(struct conn *c, uint64_t now)
{
	struct serve *s = c->user;
	struct msg hello = { .type = PREPD_HELLO,
			     .role = PREPD_WORKER,
			     .id = s->id,
			     .rest = s->c.address,
			     .n_rest = strlen(s->c.address) };

	if (!s->greeted) {
		s->greeted = true;
		outbox_put(&s->out, c, &hello);
	}
	outbox_fill(&s->out, c, now);
	return TICK_NEVER;
}

static void dispatcher_ended(struct conn *c, int why)
{
	struct serve *s = c->user;

	ends_count(&s->ends, why);
	if (s->welcome && why != -ECANCELED)
		s->n_lost++;
	if (!s->told && why != -ECANCELED)
		log_warn(
			"dispatcher %s: not connected: %s; is it running, with "
			"the same key (without a key file each user has one)?",
			s->c.dispatcher->text, ends_text(why));
	s->told = true;
	s->conn = NULL;
	s->welcome = s->greeted = s->leaving = false;
	outbox_fini(&s->out);
	redial_later(&s->redial);
}

static const struct conn_ops dispatcher_ops = {
	.message = from_dispatcher,
	.fill = fill_dispatcher,
	.ended = dispatcher_ended,
};

/* It is alive; and what a batch of each job costs it. */
static void beat(struct serve *s)
{
	struct msg m = { .type = PREPD_BEAT, .a = s->readers.n_batches };
	struct post *p;

	outbox_put(&s->out, s->conn, &m);
	DL_FOREACH (s->posts, p) {
		m.job = task_job(p->task);
		m.b = task_cost(p->task);
		if (m.b && !p->dropped)
			outbox_put(&s->out, s->conn, &m);
	}
}

/* Dial, or say that this worker is alive; when it is due again. */
static uint64_t keep_dispatcher(struct serve *s, uint64_t now)
{
	if (!s->conn) {
		if (now < s->redial.at)
			return s->redial.at;
		if (loop_dial(s->loop, s->c.dispatcher, &dispatcher_ops, s,
			      &s->conn) < 0)
			redial_later(&s->redial);
		return s->conn ? TICK_NEVER : s->redial.at;
	}
	if (!s->welcome)
		return TICK_NEVER;
	if (now >= s->beat_at) {
		beat(s);
		s->beat_at = now + s->beat_ns;
	}
	return s->beat_at;
}

/* --- the thread of the loop ----------------------------------------------- */

static struct task *task_of(void *ctx, uint64_t job)
{
	struct post *p = find_post(ctx, job);

	return p ? p->task : NULL;
}

static int accepted(struct conn *c, void *ctx)
{
	struct serve *s = ctx;

	return readers_accept(&s->readers, c);
}

static void refused(void *ctx)
{
	struct serve *s = ctx;

	s->ends.too_many++;
}

static bool is_idle(const struct serve *s)
{
	struct post *p;

	DL_FOREACH (s->posts, p) {
		if (!p->dropped && !task_is_idle(p->task))
			return false;
	}
	return true;
}

/* The dispatcher says when its trainers have everything. Without one, what was
 * requested is all that there is to finish. */
static uint64_t drain(struct serve *s, uint64_t now)
{
	const struct msg leave = { .type = PREPD_LEAVE };
	uint64_t until;

	pthread_mutex_lock(&s->lock);
	until = s->drain_until;
	pthread_mutex_unlock(&s->lock);
	if (until == TICK_NEVER)
		return until;
	if (now >= until && !s->left && !is_idle(s))
		log_warn("ends with undelivered batches; raise --drain");
	if (s->left || now >= until || (!s->welcome && is_idle(s))) {
		stop(s, NULL);
		return TICK_NEVER;
	}
	if (s->welcome && !s->leaving) {
		outbox_put(&s->out, s->conn, &leave);
		s->leaving = true;
	}
	return until;
}

static uint64_t go_round(void *ctx, uint64_t now)
{
	struct serve *s = ctx;
	uint64_t due = keep_dispatcher(s, now), drained_at = drain(s, now);
	struct post *p, *after;

	DL_FOREACH_SAFE (s->posts, p, after) {
		if (now >= p->stray_at && !p->dropped)
			drop(s, p);
		if (!p->dropped)
			due = MIN(due, p->stray_at);
		want(s, p);
		look_at(s, p);
	}
	return MIN(due, drained_at);
}

/* --- life ----------------------------------------------------------------- */

static int open_loop(struct serve *s, struct err *err)
{
	struct loop_config c = { .tick = s->c.tick,
				 .secret = &s->c.access->secret,
				 .nic = s->c.access->nic,
				 .timeout_ns = tick_emulated(s->c.tick,
							     s->c.timeout_ns),
				 .listener = addr_listen(s->c.listen, err),
				 .accepted = accepted,
				 .refused = refused,
				 .round = go_round,
				 .ctx = s };
	int r = c.listener < 0 ? c.listener : loop_new(&c, &s->loop);

	return r < 0 ? err_set(err, r, "%s", strerror(-r)) : 0;
}

int serve_new(const struct serve_config *c, struct serve **ret, struct err *err)
{
	struct serve *s = calloc(1, sizeof(*s));
	unsigned char random[SEAL_NONCE];
	int r;

	if (!s)
		return err_set(err, -ENOMEM, "out of memory");
	s->c = *c;
	redial_init(&s->redial, c->tick, LEAST_PAUSE_NS, MOST_PAUSE_NS);
	s->drain_until = TICK_NEVER;
	seal_nonce(random);
	memcpy(&s->id, random, sizeof(s->id));
	s->id |= 1; /* 0 is none */
	outbox_init(&s->out);
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->over, NULL);
	r = open_loop(s, err);
	s->readers = (struct readers){
		.loop = s->loop, .ends = &s->ends, .find = task_of, .ctx = s
	};
	if (r < 0) {
		serve_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

int serve_run(struct serve *s, struct err *err)
{
	int r = loop_start(s->loop);

	if (r < 0)
		return err_set(err, r, "cannot start a thread: %s",
			       strerror(-r));
	pthread_mutex_lock(&s->lock);
	while (!s->stopping)
		pthread_cond_wait(&s->over, &s->lock);
	if (s->err.text[0])
		r = err_set(err, -EPROTO, "the dispatcher: %s", s->err.text);
	pthread_mutex_unlock(&s->lock);
	loop_stop(s->loop);
	return r;
}

void serve_drain(struct serve *s, uint64_t most_ns)
{
	pthread_mutex_lock(&s->lock);
	s->drain_until =
		tick_now(s->c.tick) + tick_emulated(s->c.tick, most_ns);
	pthread_mutex_unlock(&s->lock);
	loop_wake(s->loop);
}

void serve_free(struct serve *s)
{
	struct post *p, *after;

	if (!s)
		return;
	if (s->loop)
		loop_stop(s->loop);
	DL_FOREACH_SAFE (s->posts, p, after) {
		DL_DELETE(s->posts, p);
		task_free(p->task);
		free(p);
	}
	loop_free(s->loop);
	outbox_fini(&s->out);
	readers_fini(&s->readers);
	pthread_cond_destroy(&s->over);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

/* Tasks may still be at work. */
static struct task_totals totals_now(const struct serve *s)
{
	const struct task_totals *t = &s->totals;

	return (struct task_totals){
		.n_made = __atomic_load_n(&t->n_made, __ATOMIC_RELAXED),
		.spent_ns = __atomic_load_n(&t->spent_ns, __ATOMIC_RELAXED),
		.n_rounds = __atomic_load_n(&t->n_rounds, __ATOMIC_RELAXED),
		.spread = __atomic_load_n(&t->spread, __ATOMIC_RELAXED),
	};
}

json_t *serve_json(const struct serve *s)
{
	struct task_totals t = totals_now(s);
	uint64_t in, out;

	loop_bytes(s->loop, &in, &out);
	return json_pack("{s:I, s:I, s:I, s:f, s:I, s:f, s:I, s:I, s:I, s:I, "
			 "s:o}",
			 "batches", (json_int_t)s->readers.n_batches,
			 "batches_made", (json_int_t)t.n_made,
			 "batches_skipped", (json_int_t)s->readers.n_skipped,
			 "made_s", (double)t.spent_ns / (double)NS_PER_S,
			 "rounds", (json_int_t)t.n_rounds, "round_spread",
			 (double)t.spread / (double)MAX(t.n_rounds, 1),
			 "bytes_sent", (json_int_t)out, "jobs",
			 (json_int_t)s->n_jobs, "jobs_failed",
			 (json_int_t)s->n_failed, "dispatcher_lost",
			 (json_int_t)s->n_lost, "connections",
			 ends_json(&s->ends));
}
