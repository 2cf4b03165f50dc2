/* SPDX-License-Identifier: MIT */
#include "service/client/desk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/units.h"
#include "common/util.h"

/* Wall times. arbitrary: a dispatcher that starts again is found soon */
#define LEAST_PAUSE_NS (50 * NS_PER_MS)
#define MOST_PAUSE_NS (1 * NS_PER_S)

void desk_init(struct desk *d)
{
	outbox_init(&d->out);
	d->redial = (struct redial){ .tick = d->links->tick,
				     .least_ns = LEAST_PAUSE_NS,
				     .most_ns = MOST_PAUSE_NS };
	redial_reset(&d->redial);
	d->gone_since = tick_now(d->links->tick);
}

void desk_fini(struct desk *d)
{
	outbox_fini(&d->out);
}

/* --- telling -------------------------------------------------------------- */

static void put(struct desk *d, const struct msg *m)
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

	put(d, &job);
	d->brought = true;
	d->turn = 0;
	d->n_told = 0;
}

/* The epoch, and the splits that are complete, as far as it was not told. */
static void tell_news(struct desk *d)
{
	struct shelf *s = d->links->shelf;
	struct msg m = { .type = PREPD_EPOCH, .job = d->links->job };

	pthread_mutex_lock(&s->lock);
	m.epoch = s->sweep.epoch;
	m.a = s->sweep.splits.samples;
	if (d->turn != s->turn) {
		put(d, &m);
		d->turn = s->turn;
		d->n_told = 0;
	}
	m.type = PREPD_DONE;
	m.a = 0;
	while (d->n_told < s->sweep.n_done) {
		m.split = s->sweep.done[d->n_told++];
		put(d, &m);
	}
	pthread_mutex_unlock(&s->lock);
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

static uint64_t fill(struct conn *c, uint64_t now)
{
	struct desk *d = c->user;
	struct msg hello = { .type = PREPD_HELLO,
			     .role = PREPD_TRAINER,
			     .id = d->links->trainer,
			     .count = d->links->consumer,
			     .job = d->links->job };

	if (!d->greeted) {
		d->greeted = true;
		put(d, &hello);
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
	outbox_init(&d->out);
	d->greeted = false;
	if (d->dropped)
		shelf_closed(d->links->shelf);
	if (why == -ECANCELED)
		return;
	if (d->welcome) {
		__atomic_fetch_add(&d->n_lost, 1, __ATOMIC_RELAXED);
		log_warn("dispatcher %s: lost: %s; the workers go on",
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
	.fill = fill,
	.ended = ended,
};

/* --- rounds --------------------------------------------------------------- */

static uint64_t dial(struct desk *d, uint64_t now)
{
	uint64_t until = d->gone_since + d->wait_ns;

	if (now >= until)
		shelf_fail(
			d->links->shelf, -ETIMEDOUT,
			"dispatcher %s is gone: %s; is it running, with "
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
		put(d, &m);
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
		put(d, &drop);
	else
		shelf_closed(d->links->shelf);
}

uint64_t desk_round(struct desk *d, uint64_t now)
{
	if (d->welcome && !d->dropped)
		tell_news(d);
	if (shelf_is_closing(d->links->shelf)) {
		drop_job(d);
		return TICK_NEVER;
	}
	return d->welcome ? beat(d, now) : dial(d, now);
}
