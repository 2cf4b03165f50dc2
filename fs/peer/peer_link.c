/* SPDX-License-Identifier: MIT */
#include "fs/peer/peer_link.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/log.h"
#include "common/units.h"
#include "common/util.h"
#include "fs/device/fetch.h"

#define NO_SLOT UINT32_MAX

/* Wall time. arbitrary: finds a starting mount quickly, and a missing one costs
 * little */
#define LEAST_PAUSE_NS (100 * NS_PER_MS)
#define MOST_PAUSE_NS (5 * NS_PER_S)

/* Wall time. arbitrary: a link that comes and goes logs two lines in it */
#define QUIET_NS (60 * NS_PER_S)

int peer_link_init(struct peer_link *l, struct peer_shared *shared,
		   uint32_t node)
{
	*l = (struct peer_link){ .shared = shared,
				 .node = node,
				 .first = NO_SLOT };
	l->redial = (struct redial){ .tick = shared->tick,
				     .least_ns = LEAST_PAUSE_NS,
				     .most_ns = MOST_PAUSE_NS };
	redial_reset(&l->redial);
	l->slots = calloc(PEER_MOST_GETS, sizeof(*l->slots));
	if (!l->slots)
		return -ENOMEM;
	for (uint32_t i = 0; i < PEER_MOST_GETS; i++)
		l->slots[i].next = i + 1 < PEER_MOST_GETS ? i + 1 : NO_SLOT;
	return 0;
}

void peer_link_fini(struct peer_link *l)
{
	free(l->slots);
}

bool peer_link_is_up(const struct peer_link *l)
{
	return __atomic_load_n(&l->up, __ATOMIC_RELAXED);
}

static void set_up(struct peer_link *l, bool up)
{
	__atomic_store_n(&l->up, up, __ATOMIC_RELAXED);
}

/* --- requests ------------------------------------------------------------- */

static void skip(struct peer_link *l, struct fetch *f)
{
	peer_count(&l->shared->counts.skipped, 1);
	l->shared->miss(l->shared->ctx, f);
}

void peer_link_ask(struct peer_link *l, struct fetch *f, uint64_t now)
{
	uint32_t i = l->free;
	struct link_slot *s;

	if (!peer_link_is_up(l) || i == NO_SLOT) {
		skip(l, f);
		return;
	}
	s = &l->slots[i];
	l->free = s->next;
	*s = (struct link_slot){ .fetch = f,
				 .id = l->n_asked++ * PEER_MOST_GETS + i,
				 .since = now,
				 .leaves = loop_leaves(l->shared->loop, now),
				 .next = NO_SLOT };
	if (l->first == NO_SLOT)
		l->first = i;
	else
		l->slots[l->last].next = i;
	l->last = i;
	l->n_waiting++;
	conn_await(l->conn, true, now);
	conn_kick(l->conn);
}

/* Returns its fetch. */
static struct fetch *free_slot(struct peer_link *l, struct link_slot *s,
			       uint64_t now)
{
	struct fetch *f = TAKE_PTR(s->fetch);

	s->next = l->free;
	l->free = (uint32_t)(s - l->slots);
	l->n_waiting--;
	if (!l->n_waiting && l->conn)
		conn_await(l->conn, false, now);
	return f;
}

static int send_get(struct peer_link *l, struct link_slot *s)
{
	unsigned char head[PEER_HEAD];
	const struct fetch *f = s->fetch;
	const struct peer_msg m = {
		.type = PEER_GET,
		.id = s->id,
		.key = (uint64_t)f->node << 32 |
		       (uint32_t)(f->offset / l->shared->most_data),
		.bytes = (uint32_t)f->bytes,
	};

	s->sent = true;
	return conn_send(l->conn, head, peer_encode(&m, head), NULL, 0,
			 s->leaves);
}

static uint64_t fill(struct conn *c, uint64_t now)
{
	struct peer_link *l = c->user;
	unsigned char head[PEER_HEAD];
	struct link_slot *s;
	int r = 0;

	if (!l->greeted) {
		const struct peer_msg m = { .type = PEER_HELLO,
					    .hello = l->shared->hello };

		l->greeted = true;
		r = conn_send(c, head, peer_encode(&m, head), NULL, 0, now);
	} else if (l->first == NO_SLOT) {
		return TICK_NEVER;
	} else {
		s = &l->slots[l->first];
		if (now < s->leaves)
			return s->leaves;
		l->first = s->next;
		r = send_get(l, s);
	}
	if (r < 0)
		conn_end(c, r);
	return now;
}

/* --- replies -------------------------------------------------------------- */

static int take_welcome(struct peer_link *l, const struct peer_msg *m)
{
	struct peer_shared *s = l->shared;
	enum peer_reason reason =
		m->type == PEER_REFUSE
			? m->reason
			: peer_compare(&s->hello, &m->hello, l->node);

	__atomic_store_n(&l->reason, reason, __ATOMIC_RELAXED);
	if (reason != PEER_FITS)
		return -EPROTO;
	conn_trust(l->conn, PEER_DATA_HEAD + s->most_data);
	redial_reset(&l->redial);
	set_up(l, true);
	if (l->told)
		log_info("peer %s: connected", s->net->nodes[l->node].text);
	l->told = false;
	return 0;
}

static int take_data(struct peer_link *l, struct link_slot *s,
		     const struct peer_msg *m, uint64_t now)
{
	struct peer_shared *shared = l->shared;
	struct fetch *f = s->fetch;

	if (m->n_data != f->bytes)
		return -EPROTO;
	memcpy(f->buf, m->data, m->n_data);
	hist_add(&shared->waits, now - s->since);
	peer_count(&shared->counts.hits, 1);
	peer_count(&shared->counts.hit_bytes, m->n_data);
	peer_count(&l->hits, 1);
	free_slot(l, s, now);
	f->error = 0;
	f->remote = true;
	f->deadline = now;
	f->ahead = 0;
	f->done(f, false);
	return 0;
}

static int message(struct conn *c, unsigned char *bytes, size_t n, uint64_t now)
{
	struct peer_link *l = c->user;
	struct link_slot *s;
	struct peer_msg m;
	int r = peer_decode(bytes, n, &m);

	if (r < 0)
		return r;
	if (!peer_link_is_up(l))
		return m.type == PEER_WELCOME || m.type == PEER_REFUSE
			       ? take_welcome(l, &m)
			       : -EPROTO;
	s = &l->slots[m.id % PEER_MOST_GETS];
	if (!s->fetch || s->id != m.id || !s->sent)
		return -EPROTO;
	if (m.type == PEER_DATA)
		return take_data(l, s, &m, now);
	if (m.type != PEER_NOTFOUND)
		return -EPROTO;
	peer_count(&l->shared->counts.notfound, 1);
	l->shared->miss(l->shared->ctx, free_slot(l, s, now));
	return 0;
}

/* --- life of the connection ----------------------------------------------- */

/* A mismatch does not go away soon: back off for longest. */
static bool stays(int why)
{
	return why == -EPROTO || why == -EBADMSG || why == -EPROTONOSUPPORT;
}

static void back_off(struct peer_link *l, int why)
{
	if (stays(why))
		l->redial.pause_ns =
			tick_emulated(l->redial.tick, MOST_PAUSE_NS);
	redial_later(&l->redial);
}

static const char *text_of(int why, enum peer_reason reason)
{
	if (reason != PEER_FITS && why == -EPROTO)
		return peer_reason_text(reason);
	return why == -EBADMSG
		       ? "it has a different --peer-key, or is not gpemu-fs"
	       : why == -EPROTONOSUPPORT ? "it has a different version"
	       : why == -ETIMEDOUT	 ? "too slow"
	       : why == -ECONNRESET	 ? "the connection was closed"
	       : why			 ? strerror(-why)
					 : "";
}

static void tell_loss(struct peer_link *l, const char *name, const char *text)
{
	uint64_t now = tick_now(l->shared->tick);

	if (now < l->quiet_until) {
		l->n_quiet++;
		return;
	}
	log_warn("peer %s: lost: %s; its objects are read from the storage "
		 "until it is back",
		 name, text);
	if (l->n_quiet)
		log_warn("peer %s: it was lost %" PRIu64
			 " more times since the last message",
			 name, l->n_quiet);
	l->n_quiet = 0;
	l->quiet_until = now + tick_emulated(l->shared->tick, QUIET_NS);
	l->told = true;
}

/* Log each loss once, and not each of many. A node that was never connected is
 * logged only if it is more than a mount that has yet to start. */
static void tell_end(struct peer_link *l, int why, bool was_up)
{
	const char *name = l->shared->net->nodes[l->node].text;
	const char *text =
		text_of(why, __atomic_load_n(&l->reason, __ATOMIC_RELAXED));

	if (was_up) {
		tell_loss(l, name, text);
	} else if (!l->told && (stays(why) || redial_is_slow(&l->redial))) {
		log_warn("peer %s: not connected: %s", name, text);
		l->told = true;
	}
}

static void fail_all(struct peer_link *l, int why, uint64_t now)
{
	l->first = NO_SLOT;
	for (uint32_t i = 0; i < PEER_MOST_GETS && l->n_waiting; i++) {
		struct fetch *f = l->slots[i].fetch;

		if (!f)
			continue;
		free_slot(l, &l->slots[i], now);
		if (why == -ECANCELED) {
			f->done(f, true);
			continue;
		}
		peer_count(&l->shared->counts.unanswered, 1);
		peer_count(&l->unanswered, 1);
		l->shared->miss(l->shared->ctx, f);
	}
}

static void ended(struct conn *c, int why)
{
	struct peer_link *l = c->user;
	bool was_up = peer_link_is_up(l);

	l->conn = NULL;
	l->greeted = false;
	set_up(l, false);
	peer_count_end(&l->shared->counts, why, false);
	if (why != -ECANCELED) {
		tell_end(l, why, was_up);
		__atomic_store_n(&l->why, why, __ATOMIC_RELAXED);
		if (was_up) {
			peer_count(&l->shared->counts.lost, 1);
			peer_count(&l->lost, 1);
		}
		back_off(l, why);
	}
	fail_all(l, why, tick_now(l->shared->tick));
}

static const struct conn_ops link_ops = {
	.message = message,
	.fill = fill,
	.ended = ended,
};

void peer_link_hint(struct peer_link *l)
{
	if (l->conn)
		return;
	l->redial.at = 0;
	redial_reset(&l->redial);
}

/* Is a reply overdue? */
static bool is_overdue(const struct peer_link *l, uint64_t now)
{
	for (uint32_t i = 0; i < PEER_MOST_GETS; i++)
		if (l->slots[i].fetch &&
		    now - l->slots[i].since >
			    LINK_PATIENCE * l->shared->timeout_ns)
			return true;
	return false;
}

uint64_t peer_link_round(struct peer_link *l, uint64_t now)
{
	if (l->conn) {
		if (!l->n_waiting)
			return TICK_NEVER;
		if (now >= l->redial.at) { /* here: of the next look */
			if (is_overdue(l, now))
				conn_end(l->conn, -ETIMEDOUT);
			l->redial.at = now + l->shared->timeout_ns;
		}
		return l->redial.at;
	}
	if (now >= l->redial.at) {
		int r = loop_dial(l->shared->loop,
				  &l->shared->net->nodes[l->node], &link_ops, l,
				  &l->conn);

		if (r < 0)
			back_off(l, r);
		else
			l->redial.at = now;
	}
	return l->conn ? TICK_NEVER : l->redial.at;
}

void peer_link_reset(struct peer_link *l)
{
	__atomic_store_n(&l->hits, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&l->unanswered, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&l->lost, 0, __ATOMIC_RELAXED);
}

json_t *peer_link_json(const struct peer_link *l)
{
	int why = __atomic_load_n(&l->why, __ATOMIC_RELAXED);
	enum peer_reason reason = __atomic_load_n(&l->reason, __ATOMIC_RELAXED);
	bool up = peer_link_is_up(l);

	return json_pack(
		"{s:I, s:o, s:b, s:I, s:I, s:I, s:s}", "node",
		(json_int_t)l->node, "address",
		json_bytes(l->shared->net->nodes[l->node].text), "connected",
		up, "hits",
		(json_int_t)__atomic_load_n(&l->hits, __ATOMIC_RELAXED),
		"unanswered",
		(json_int_t)__atomic_load_n(&l->unanswered, __ATOMIC_RELAXED),
		"lost", (json_int_t)__atomic_load_n(&l->lost, __ATOMIC_RELAXED),
		"last_error", text_of(why, reason));
}
