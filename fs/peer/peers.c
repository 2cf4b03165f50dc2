/* SPDX-License-Identifier: MIT */
#include "fs/peer/peers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/tick.h"
#include "common/units.h"
#include "common/util.h"
#include "fs/device/fetch.h"
#include "fs/peer/peer_link.h"

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
static void take(struct peers *p, bool stops, struct fetch **ret_wanted,
		 struct peer_ask **ret_answers)
{
	pthread_mutex_lock(&p->lock);
	*ret_wanted = TAKE_PTR(p->wanted);
	*ret_answers = TAKE_PTR(p->answers);
	p->wanted_end = &p->wanted;
	p->answers_end = &p->answers;
	p->stopped = p->stopped || stops;
	pthread_mutex_unlock(&p->lock);
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

	take(p, false, &wanted, &answers);
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
	take(p, true, &wanted, &answers);
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
	json_object_set_new(part, "node", json_integer(p->c.net->self));
	json_object_set_new(part, "peers", list);
	json_object_set_new(part, "wait_us",
			    hist_json(&p->shared.waits, NS_PER_US));
}
