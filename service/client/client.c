/* SPDX-License-Identifier: MIT */
#include "service/client/client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "common/json.h"
#include "common/log.h"
#include "common/thread.h"
#include "common/units.h"
#include "common/util.h"
#include "net/redial.h"
#include "service/client/links.h"
#include "service/proto/outbox.h"

/*
 * A trainer's connection to the dispatcher. What the dispatcher has to know is
 * sent again after each connect, so that one that was started anew, even
 * without its journal, goes on. On the thread of the loop.
 */

struct desk {
	struct links *links; /* which has the shelf, the loop, the job */
	const struct addr *dispatcher;
	const char *definition;
	enum split_mode mode;
	uint32_t batch, per_split; /* links has how it is shared */
	/* emulated: no longer without the dispatcher; the loop's time-out */
	uint64_t wait_ns, timeout_ns;
	/* private */
	struct conn *conn; /* NULL: not now */
	struct outbox out;
	bool greeted, welcome, brought, dropped; /* brought: the job, once */
	struct redial redial;
	uint64_t gone_since, beat_at, beat_ns;
	uint64_t turn;	 /* of the shelf, that it was told of */
	uint32_t n_told; /* splits that are done */
	int why;	 /* of the last end of a connection; 0: it is there */
	uint64_t n_lost; /* connections; atomic */
};

/* Wall times. arbitrary: a dispatcher that starts again is found soon */
#define LEAST_PAUSE_NS (50 * NS_PER_MS)
#define MOST_PAUSE_NS (1 * NS_PER_S)

static void desk_init(struct desk *d)
{
	outbox_init(&d->out);
	redial_init(&d->redial, d->links->tick, LEAST_PAUSE_NS, MOST_PAUSE_NS);
	d->gone_since = tick_now(d->links->tick);
}

static void desk_fini(struct desk *d)
{
	outbox_fini(&d->out);
}

/* --- telling -------------------------------------------------------------- */

static void put_msg(struct desk *d, const struct msg *m)
{
	outbox_put(&d->out, d->conn, m);
}

static void tell_job(struct desk *d)
{
	const struct msg job = { .type = PREPD_JOB,
				 .job = d->links->job,
				 .role = (uint8_t)d->mode,
				 .count = d->batch,
				 .split = d->per_split,
				 .share = d->links->share.how,
				 .a = d->links->share.bucket,
				 .b = d->links->share.consumers,
				 .c = d->brought,
				 .rest = d->definition,
				 .n_rest = strlen(d->definition) };

	put_msg(d, &job);
	d->brought = true;
	d->turn = 0;
	d->n_told = 0;
}

/* The epoch, and the splits that are complete, as far as it was not told. */
static void tell_news(struct desk *d)
{
	struct shelf *s = d->links->shelf;
	struct msg m = { .type = PREPD_EPOCH, .job = d->links->job };

	LOCK_SCOPE(&s->lock);
	m.epoch = s->sweep.epoch;
	m.a = s->sweep.splits.samples;
	if (d->turn != s->turn) {
		put_msg(d, &m);
		d->turn = s->turn;
		d->n_told = 0;
	}
	m.type = PREPD_DONE;
	m.a = 0;
	while (d->n_told < s->sweep.n_done) {
		m.split = s->sweep.done[d->n_told++];
		put_msg(d, &m);
	}
}

/* --- messages ------------------------------------------------------------- */

static int take_refusal(struct desk *d, const struct msg *m)
{
	_cleanup_free_ char *why = msg_text(m);

	shelf_fail(d->links->shelf, -EPROTO, "dispatcher %s: %s",
		   d->dispatcher->text, why ? why : "refused");
	return -EPROTO;
}

static void take_welcome(struct desk *d, const struct msg *m, uint64_t now)
{
	conn_trust(d->conn, PREPD_MOST);
	conn_await(d->conn, true, now);
	d->beat_ns =
		MAX(MIN(tick_emulated(d->links->tick, m->a), d->timeout_ns) / 3,
		    tick_emulated(d->links->tick, LEAST_BEAT_NS));
	d->beat_at = now;
	d->welcome = true;
	redial_reset(&d->redial);
	if (__atomic_load_n(&d->n_lost, __ATOMIC_RELAXED))
		log_warn("dispatcher %s: connected again", d->dispatcher->text);
	d->why = 0;
	tell_job(d);
}

static int message(struct conn *c, unsigned char *bytes, size_t n, uint64_t now)
{
	struct desk *d = c->user;
	_cleanup_free_ char *text = NULL;
	struct msg m;
	int r = msg_decode(bytes, n, &m);

	if (r < 0)
		return r;
	text = msg_text(&m);
	if (!text)
		return -ENOMEM;
	conn_kick(c);
	switch (m.type) {
	case PREPD_REFUSE: return take_refusal(d, &m);
	case PREPD_WELCOME: take_welcome(d, &m, now); return 0;
	case PREPD_BEAT: return 0;
	case PREPD_TASK:
		if (m.count)
			links_add(d->links, m.id, text);
		else
			links_remove(d->links, m.id);
		return 0;
	case PREPD_FAILED: links_failed(d->links, m.id, text); return 0;
	case PREPD_EPOCH: return links_take_turns(d->links, &m);
	case PREPD_LOST:
		shelf_lose(d->links->shelf, m.epoch, m.split, m.id);
		return 0;
	default: return -EPROTO;
	}
}

static uint64_t fill_desk(struct conn *c, uint64_t now)
{
	struct desk *d = c->user;
	struct msg hello = { .type = PREPD_HELLO,
			     .role = PREPD_TRAINER,
			     .id = d->links->trainer,
			     .count = d->links->consumer,
			     .job = d->links->job };

	if (!d->greeted) {
		d->greeted = true;
		put_msg(d, &hello);
	}
	if (!outbox_fill(&d->out, c, now) && d->dropped)
		shelf_closed(d->links->shelf);
	return TICK_NEVER;
}

static void ended(struct conn *c, int why)
{
	struct desk *d = c->user;

	d->conn = NULL;
	outbox_fini(&d->out);
	d->greeted = false;
	if (d->dropped)
		shelf_closed(d->links->shelf);
	if (why == -ECANCELED)
		return;
	if (d->welcome) {
		__atomic_fetch_add(&d->n_lost, 1, __ATOMIC_RELAXED);
		log_warn("dispatcher %s: lost: %s; the workers continue",
			 d->dispatcher->text, ends_text(why));
		d->gone_since = tick_now(d->links->tick);
	}
	d->why = why;
	d->welcome = false;
	if (why == -EBADMSG || why == -EPROTONOSUPPORT)
		shelf_fail(d->links->shelf, why, "dispatcher %s: %s",
			   d->dispatcher->text, ends_text(why));
	redial_later(&d->redial);
}

static const struct conn_ops dispatcher_ops = {
	.message = message,
	.fill = fill_desk,
	.ended = ended,
};

/* --- rounds --------------------------------------------------------------- */

static uint64_t dial(struct desk *d, uint64_t now)
{
	uint64_t until = d->gone_since + d->wait_ns;

	if (now >= until)
		shelf_fail(
			d->links->shelf, -ETIMEDOUT,
			"dispatcher %s is unreachable: %s; is it running, with "
			"the same key (without a key file each user has one)?",
			d->dispatcher->text,
			d->why ? ends_text(d->why) : "no answer");
	if (!d->conn && now >= d->redial.at &&
	    loop_dial(d->links->loop, d->dispatcher, &dispatcher_ops, d,
		      &d->conn) < 0)
		redial_later(&d->redial);
	if (!d->conn)
		until = MIN(until, d->redial.at);
	return now >= until ? TICK_NEVER : until;
}

/* It is alive; returns when to say so again. */
static uint64_t beat(struct desk *d, uint64_t now)
{
	struct msg m = { .type = PREPD_BEAT };

	if (now >= d->beat_at) {
		m.b = shelf_target(d->links->shelf);
		put_msg(d, &m);
		d->beat_at = now + d->beat_ns;
	}
	return d->beat_at;
}

/* The job is over: it frees what it has in the service. */
static void drop_job(struct desk *d)
{
	const struct msg drop = { .type = PREPD_DROP, .job = d->links->job };

	if (d->dropped)
		return;
	d->dropped = true;
	if (d->welcome)
		put_msg(d, &drop);
	else
		shelf_closed(d->links->shelf);
}

/* Before each round: dial, tell; returns when due again. */
static uint64_t desk_round(struct desk *d, uint64_t now)
{
	if (d->welcome && !d->dropped)
		tell_news(d);
	if (shelf_is_closing(d->links->shelf)) {
		drop_job(d);
		return TICK_NEVER;
	}
	return d->welcome ? beat(d, now) : dial(d, now);
}

/* The dispatcher hears that the job is over, or its time-out tells it.
 * arbitrary: far longer than a message takes */
#define CLOSE_NS NS_PER_S

struct client {
	struct client_config c;
	char *definition;
	struct access access;
	struct addr dispatcher;
	struct loop *loop;
	struct shelf shelf;
	struct links links;
	struct desk desk;
	bool started;
};

size_t client_buffer_bytes(uint32_t n, uint64_t bytes)
{
	return msg_batch_head(n) + bytes + SEAL_TAG;
}

/* --- the thread of the loop ----------------------------------------------- */

static uint64_t go_round(void *ctx, uint64_t now)
{
	struct client *c = ctx;
	uint64_t desk = desk_round(&c->desk, now);
	uint64_t links = links_round(&c->links, now, c->desk.wait_ns);

	return MIN(desk, links);
}

static int no_guests(struct conn *c, void *ctx)
{
	(void)c;
	(void)ctx;
	return -EPROTO;
}

static void refused(void *ctx)
{
	(void)ctx;
}

/* --- life ----------------------------------------------------------------- */

/* Wall time for a message that has begun. arbitrary: a large batch over a slow
 * card */
#define TIMEOUT_NS (10 * NS_PER_S)

/* Nobody else has it. */
static uint64_t random_number(void)
{
	unsigned char bytes[SEAL_NONCE];
	uint64_t n;

	seal_nonce(bytes);
	memcpy(&n, bytes, sizeof(n));
	return n | 1; /* 0 is none */
}

/* The same for all trainers. */
static uint64_t number_of(const char *name)
{
	return XXH3_64bits(name, strlen(name)) | 1;
}

static int open_loop(struct client *c, struct err *err)
{
	struct loop_config l = {
		.tick = c->c.tick,
		.secret = &c->access.secret,
		.nic = c->access.nic,
		.timeout_ns = tick_emulated(c->c.tick, TIMEOUT_NS),
		.listener = -1,
		.accepted = no_guests,
		.refused = refused,
		.round = go_round,
		.ctx = c,
	};
	int r = loop_new(&l, &c->loop);

	c->links = (struct links){ .loop = c->loop,
				   .tick = c->c.tick,
				   .access = &c->access,
				   .shelf = &c->shelf,
				   .trainer = random_number(),
				   .share = c->c.share,
				   .consumer = c->c.consumer };
	c->links.job = c->c.job ? number_of(c->c.job) : c->links.trainer;
	links_init(&c->links);
	c->desk = (struct desk){
		.links = &c->links,
		.dispatcher = &c->dispatcher,
		.definition = c->definition,
		.mode = c->c.mode,
		.batch = c->c.batch,
		.per_split = c->c.per_split,
		.wait_ns = tick_emulated(c->c.tick, c->c.wait_ns),
		.timeout_ns = l.timeout_ns,
	};
	desk_init(&c->desk);
	return r < 0 ? err_set(err, r, "%s", strerror(-r)) : 0;
}

int client_new(const struct client_config *config, struct client **ret,
	       struct err *err)
{
	struct client *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return err_set(err, -ENOMEM, "out of memory");
	c->c = *config;
	r = shelf_init(&c->shelf, config->tick, config->buffer,
		       config->n_buffers, config->buffer_bytes);
	c->shelf.by_rounds = config->share.how == SHARE_ROUNDS;
	c->definition = strdup(config->definition);
	if (r < 0 || !c->definition)
		r = err_set(err, -ENOMEM, "out of memory");
	else if (config->buffer_bytes > UINT32_MAX) /* net/frame.h */
		r = err_set(err, -E2BIG,
			    "a batch of more than 4 GiB: use a smaller "
			    "--batch");
	if (r == 0)
		r = access_init(&c->access, config->key, err);
	if (r == 0)
		r = access_find(&c->access, config->dispatcher, &c->dispatcher,
				err);
	if (r == 0) {
		nic_limit(c->access.nic, config->nic_bytes_per_s,
			  config->nic_latency_ns);
		r = open_loop(c, err);
	}
	if (r == 0) {
		r = loop_start(c->loop);
		c->started = r == 0;
		if (r < 0)
			err_set(err, r, "cannot start a thread: %s",
				strerror(-r));
	}
	if (r < 0) {
		client_free(c);
		return r;
	}
	*ret = c;
	return 0;
}

void client_free(struct client *c)
{
	if (!c)
		return;
	if (c->loop) {
		shelf_begin_close(&c->shelf);
		loop_wake(c->loop);
		if (c->started)
			shelf_wait_closed(&c->shelf,
					  tick_now(c->c.tick) +
						  tick_emulated(c->c.tick,
								CLOSE_NS));
		loop_stop(c->loop);
		desk_fini(&c->desk);
		links_fini(&c->links);
	}
	loop_free(c->loop);
	shelf_fini(&c->shelf);
	addr_fini(&c->dispatcher);
	access_fini(&c->access);
	free(c->definition);
	free(c);
}

int client_begin(struct client *c, uint64_t epoch, const uint32_t *order,
		 uint64_t n, struct err *err)
{
	int r = shelf_begin(&c->shelf, c->c.mode, epoch, order, n,
			    c->c.n_samples, c->c.batch, c->c.per_split);

	if (r == -EINVAL)
		return err_set(err, r,
			       "more than %d splits in an epoch: make them "
			       "larger (split=)",
			       SPLITS_MOST);
	if (r < 0)
		return err_set(err, r, "%s", strerror(-r));
	loop_wake(c->loop);
	return 0;
}

uint64_t client_cut(struct client *c, uint64_t n)
{
	n = shelf_cut(&c->shelf, n);
	loop_wake(c->loop);
	return n;
}

int client_next(struct client *c, uint64_t until, struct shelf_buffer **ret,
		struct err *err)
{
	return shelf_take(&c->shelf, until, ret, err);
}

double client_count(struct client *c, const struct shelf_arrival *a,
		    uint64_t idle)
{
	return shelf_count(&c->shelf, a, idle);
}

void client_release(struct client *c, struct shelf_buffer *b)
{
	shelf_free(&c->shelf, b);
	loop_wake(c->loop);
}

uint32_t client_n_ready(struct client *c)
{
	return shelf_n_ready(&c->shelf);
}

void client_stop(struct client *c)
{
	shelf_stop(&c->shelf);
}

json_t *client_json(struct client *c)
{
	uint64_t lost = __atomic_load_n(&c->desk.n_lost, __ATOMIC_RELAXED);
	uint64_t in, out;
	json_t *j;

	loop_bytes(c->loop, &in, &out);
	j = json_pack("{s:o, s:o?, s:s, s:I, s:I, s:I, s:I, s:I}", "dispatcher",
		      json_bytes(c->c.dispatcher), "job", json_bytes(c->c.job),
		      "sharding", split_modes[c->c.mode], "split_batches",
		      (json_int_t)c->c.per_split, "buffers",
		      (json_int_t)c->c.n_buffers, "dispatcher_lost",
		      (json_int_t)lost, "bytes_received", (json_int_t)in,
		      "bytes_sent", (json_int_t)out);
	if (j &&
	    (links_json(&c->links, j) < 0 || shelf_json(&c->shelf, j) < 0)) {
		json_decref(j);
		return NULL;
	}
	return j;
}
