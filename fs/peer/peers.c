/* SPDX-License-Identifier: MIT */
#include "fs/peer/peers.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/log.h"
#include "common/thread.h"
#include "common/tick.h"
#include "common/units.h"
#include "common/util.h"
#include "fs/device/fetch.h"
#include "fs/peer/peer_shared.h"
#include "net/redial.h"

/*
 * --- links ----------------------------------------------------------------
 *
 * The connection to an owner, and the fetches of objects that wait for it.
 *
 * 	AWAY --dial--> GREETING --WELCOME--> UP
 * 	  ^---- back-off ----'------ended-----'
 *
 * Only a link that is up takes fetches. When it ends, all of them go to
 * `miss`: to the storage. It dials again after a back-off that doubles, or at
 * once when the other node has connected to this one.
 *
 * A link ends as too slow if requests are outstanding and no reply comes for
 * the time-out, or if a single one is outstanding for LINK_PATIENCE time-outs.
 */

enum { LINK_PATIENCE = 8 };

struct link_slot {
	struct fetch *fetch; /* NULL: free */
	uint64_t id, since, leaves;
	bool sent;
	uint32_t next; /* in the list of free ones, or of those to be sent */
};

struct peer_link {
	struct peer_shared *shared;
	uint32_t node;
	struct conn *conn; /* NULL: away */
	bool greeted, told;
	uint64_t quiet_until, n_quiet; /* losses until then are not logged */
	bool up;		       /* atomic */
	struct redial
		redial; /* `at`, while it is there: look for overdue ones */
	struct link_slot *slots; /* PEER_MOST_GETS */
	uint32_t free, first, last;
	uint32_t n_waiting;
	uint64_t n_asked;
	int why;			 /* atomic: of the last end */
	enum peer_reason reason;	 /* atomic: of the last refusal */
	uint64_t hits, unanswered, lost; /* atomic */
};

#define NO_SLOT UINT32_MAX

/* Wall time. arbitrary: finds a starting mount quickly, and a missing one costs
 * little */
#define LEAST_PAUSE_NS (100 * NS_PER_MS)
#define MOST_PAUSE_NS (5 * NS_PER_S)

/* Wall time. arbitrary: a link that comes and goes logs two lines in it */
#define QUIET_NS (60 * NS_PER_S)

/* -ENOMEM. */
static int peer_link_init(struct peer_link *l, struct peer_shared *shared,
			  uint32_t node)
{
	*l = (struct peer_link){ .shared = shared,
				 .node = node,
				 .first = NO_SLOT };
	redial_init(&l->redial, shared->tick, LEAST_PAUSE_NS, MOST_PAUSE_NS);
	l->slots = calloc(PEER_MOST_GETS, sizeof(*l->slots));
	if (!l->slots)
		return -ENOMEM;
	for (uint32_t i = 0; i < PEER_MOST_GETS; i++)
		l->slots[i].next = i + 1 < PEER_MOST_GETS ? i + 1 : NO_SLOT;
	return 0;
}

/* Its connection has ended. */
static void peer_link_fini(struct peer_link *l)
{
	free(l->slots);
}

/* Any thread: does it take fetches? */
static bool peer_link_is_up(const struct peer_link *l)
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

/* Ask for the object that `f` fetches: f->done or `miss` follows, perhaps at
 * once. */
static void peer_link_ask(struct peer_link *l, struct fetch *f, uint64_t now)
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

static uint64_t fill_link(struct conn *c, uint64_t now)
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
	.fill = fill_link,
	.ended = ended,
};

/* The other node is up: dial now. */
static void peer_link_hint(struct peer_link *l)
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

/* Dial or give up, if due; returns when it is due next. */
static uint64_t peer_link_round(struct peer_link *l, uint64_t now)
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

/* Any thread: its counters start again. */
static void peer_link_reset(struct peer_link *l)
{
	__atomic_store_n(&l->hits, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&l->unanswered, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&l->lost, 0, __ATOMIC_RELAXED);
}

/* Any thread: its part of the stats. */
static json_t *peer_link_json(const struct peer_link *l)
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

struct peers {
	struct peers_config c;
	struct peer_shared shared;
	struct place *place;
	struct peer_link links[PLACE_NODES]; /* but [self] */
	struct peer_desk desk;
	/* Queues from other threads. Also taken by the timing thread, so hold
	 * it for a few lines only. */
	pthread_mutex_t lock; /* guards all below */
	struct fetch *wanted, **wanted_end;
	struct peer_ask *answers, **answers_end;
	bool stopped;
};

/* --- queues --------------------------------------------------------------- */

static uint64_t key_of(const struct peers *p, const struct fetch *f)
{
	return (uint64_t)f->node << 32 | f->offset / p->c.extent_bytes;
}

static uint32_t others_owner(const struct peers *p, uint64_t key)
{
	uint32_t owner = place_owner(p->place, key);

	return owner == p->c.net->self ? PLACE_NONE : owner;
}

bool peers_have(const struct peers *p, uint64_t key)
{
	uint32_t owner = others_owner(p, key);

	return owner != PLACE_NONE && peer_link_is_up(&p->links[owner]);
}

bool peers_want(struct peers *p, struct fetch *f)
{
	uint32_t owner = others_owner(p, key_of(p, f));
	bool stopped;

	if (owner == PLACE_NONE)
		return false;
	if (!peer_link_is_up(&p->links[owner])) {
		peer_count(&p->shared.counts.skipped, 1);
		return false;
	}
	pthread_mutex_lock(&p->lock);
	stopped = p->stopped;
	if (!stopped) {
		f->next = NULL;
		*p->wanted_end = f;
		p->wanted_end = &f->next;
	}
	pthread_mutex_unlock(&p->lock);
	if (stopped) {
		f->deadline = f->arrival;
		f->done(f, true);
	} else {
		loop_wake(p->shared.loop);
	}
	return true;
}

void peers_answer(struct peers *p, struct peer_ask *a)
{
	bool stopped;

	pthread_mutex_lock(&p->lock);
	stopped = p->stopped;
	if (!stopped) {
		a->next = NULL;
		*p->answers_end = a;
		p->answers_end = &a->next;
	}
	pthread_mutex_unlock(&p->lock);
	if (stopped)
		a->release(a);
	else
		loop_wake(p->shared.loop);
}

/* Take both queues; none follow where `stops`. */
static void take_queues(struct peers *p, bool stops, struct fetch **ret_wanted,
			struct peer_ask **ret_answers)
{
	LOCK_SCOPE(&p->lock);
	*ret_wanted = TAKE_PTR(p->wanted);
	*ret_answers = TAKE_PTR(p->answers);
	p->wanted_end = &p->wanted;
	p->answers_end = &p->answers;
	p->stopped = p->stopped || stops;
}

/* --- the thread of the loop ----------------------------------------------- */

/* The owner may have changed since peers_want. */
static void ask_owner(struct peers *p, struct fetch *f, uint64_t now)
{
	uint32_t owner = others_owner(p, key_of(p, f));

	if (owner != PLACE_NONE) {
		peer_link_ask(&p->links[owner], f, now);
		return;
	}
	peer_count(&p->shared.counts.skipped, 1);
	p->c.miss(p->c.ctx, f);
}

static uint64_t go_round(void *ctx, uint64_t now)
{
	struct peers *p = ctx;
	struct peer_ask *answers;
	struct fetch *wanted;
	uint64_t at = TICK_NEVER;

	take_queues(p, false, &wanted, &answers);
	while (wanted) {
		struct fetch *f = wanted;

		wanted = f->next;
		ask_owner(p, f, now);
	}
	while (answers) {
		struct peer_ask *a = answers;

		answers = a->next;
		peer_desk_answer(&p->desk, a, now);
	}
	for (uint32_t k = 0; k < p->c.net->n; k++) {
		uint64_t due;

		if (k == p->c.net->self)
			continue;
		due = peer_link_round(&p->links[k], now);
		at = MIN(at, due);
	}
	return at;
}

static int accepted(struct conn *c, void *ctx)
{
	struct peers *p = ctx;

	return peer_desk_accept(&p->desk, c);
}

static void refused(void *ctx)
{
	struct peers *p = ctx;

	peer_count(&p->shared.counts.refused, 1);
}

static void met(void *ctx, uint32_t node)
{
	struct peers *p = ctx;

	peer_link_hint(&p->links[node]);
}

/* --- life ----------------------------------------------------------------- */

static int init_place(struct peers *p, struct err *err)
{
	const struct place_config c = { .tree = p->c.tree,
					.seed = p->c.seed,
					.n_nodes = p->c.net->n,
					.self = p->c.net->self,
					.capacity_bytes = p->c.capacity_bytes,
					.extent_bytes = p->c.extent_bytes };
	struct peer_hello *h = &p->shared.hello;
	int r = place_new(&c, &p->place);

	*h = (struct peer_hello){ .version = PEER_VERSION,
				  .node = p->c.net->self,
				  .nodes = p->c.net->n,
				  .seed = p->c.seed,
				  .capacity_bytes = p->c.capacity_bytes };
	if (r == 0)
		r = place_fingerprint(p->c.tree, h->fingerprint);
	return r < 0 ? err_set(err, r, "peers: %s", strerror(-r)) : 0;
}

static void init_shared(struct peers *p)
{
	struct peer_shared *s = &p->shared;

	s->net = p->c.net;
	s->tick = p->c.tick;
	/* a time scale above 1 stretches the emulated waits of owners; below 1
	 * sockets stay as slow as they are */
	s->timeout_ns = MAX(p->c.net->timeout_ns,
			    tick_emulated(s->tick, p->c.net->timeout_ns));
	s->most_data = p->c.extent_bytes;
	s->miss = p->c.miss;
	s->ctx = p->c.ctx;
	p->desk = (struct peer_desk){ .shared = s,
				      .ask_size = p->c.ask_size,
				      .serve = p->c.serve,
				      .ctx = p->c.ctx,
				      .met = met,
				      .owner = p };
}

static int init_loop(struct peers *p, struct err *err)
{
	const struct peer_net *net = p->c.net;
	struct loop_config c = { .tick = p->c.tick,
				 .secret = &net->secret,
				 .nic = net->nic,
				 .timeout_ns = p->shared.timeout_ns,
				 .accepted = accepted,
				 .refused = refused,
				 .round = go_round,
				 .ctx = p };
	int r;

	c.listener = addr_listen(&net->nodes[net->self], err);
	if (c.listener < 0)
		return c.listener;
	r = loop_new(&c, &p->shared.loop);
	for (uint32_t k = 0; r == 0 && k < net->n; k++)
		if (k != net->self)
			r = peer_link_init(&p->links[k], &p->shared, k);
	return r < 0 ? err_set(err, r, "peers: %s", strerror(-r)) : 0;
}

int peers_start(struct peers *p, struct err *err)
{
	int r = loop_start(p->shared.loop);

	return r < 0 ? err_set(err, r, "peers: %s", strerror(-r)) : 0;
}

int peers_new(const struct peers_config *c, struct peers **ret, struct err *err)
{
	struct peers *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return err_set(err, -ENOMEM, "out of memory");
	p->c = *c;
	tick_mutex_init(&p->lock);
	p->wanted_end = &p->wanted;
	p->answers_end = &p->answers;
	init_shared(p);
	r = init_place(p, err);
	if (r == 0)
		r = init_loop(p, err);
	if (r < 0) {
		peers_free(p);
		return r;
	}
	*ret = p;
	return 0;
}

void peers_stop(struct peers *p)
{
	struct peer_ask *answers;
	struct fetch *wanted;

	if (p->shared.loop)
		loop_stop(p->shared.loop);
	take_queues(p, true, &wanted, &answers);
	while (wanted) {
		struct fetch *f = wanted;

		wanted = f->next;
		f->deadline = f->arrival;
		f->done(f, true);
	}
	while (answers) {
		struct peer_ask *a = answers;

		answers = a->next;
		a->release(a);
	}
}

void peers_free(struct peers *p)
{
	if (!p)
		return;
	peers_stop(p);
	loop_free(p->shared.loop);
	for (uint32_t k = 0; k < p->c.net->n; k++)
		peer_link_fini(&p->links[k]);
	place_free(p->place);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

/* --- numbers -------------------------------------------------------------- */

struct place *peers_place(const struct peers *p)
{
	return p->place;
}

struct peer_counts peers_counts(const struct peers *p, uint64_t *ret_connected)
{
	const uint64_t *from = (const uint64_t *)&p->shared.counts;
	struct peer_counts n;
	uint64_t *to = (uint64_t *)&n;

	for (size_t i = 0; i < sizeof(n) / sizeof(*to); i++)
		to[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
	*ret_connected = 0;
	for (uint32_t k = 0; k < p->c.net->n; k++)
		*ret_connected += peer_link_is_up(&p->links[k]);
	return n;
}

void peers_reset(struct peers *p)
{
	uint64_t *n = (uint64_t *)&p->shared.counts;

	for (size_t i = 0; i < sizeof(p->shared.counts) / sizeof(*n); i++)
		__atomic_store_n(&n[i], 0, __ATOMIC_RELAXED);
	hist_reset(&p->shared.waits);
	for (uint32_t k = 0; k < p->c.net->n; k++)
		if (k != p->c.net->self)
			peer_link_reset(&p->links[k]);
}

void peers_bytes(const struct peers *p, uint64_t *ret_in, uint64_t *ret_out)
{
	loop_bytes(p->shared.loop, ret_in, ret_out);
}

void peers_json(const struct peers *p, json_t *part)
{
	json_t *list = json_array();

	for (uint32_t k = 0; k < p->c.net->n; k++)
		if (k != p->c.net->self)
			json_array_append_new(list,
					      peer_link_json(&p->links[k]));
	json_add_integer(part, "node", p->c.net->self);
	json_object_set_new(part, "peers", list);
	json_object_set_new(part, "wait_us",
			    hist_json(&p->shared.waits, NS_PER_US));
}
