/* SPDX-License-Identifier: MIT */
#include "fs/peer/peer_desk.h"

#include <errno.h>
#include <stdlib.h>
#include <utlist.h>

#include "common/log.h"
#include "common/util.h"

struct desk_guest {
	struct peer_desk *desk;
	struct conn *conn;
	uint64_t number;     /* from 1 */
	uint32_t node;	     /* once it is welcome */
	enum peer_type next; /* WELCOME or REFUSE to be sent, or 0 */
	enum peer_reason reason;
	bool met, leaves;
	struct peer_ask *first, **end; /* answers to be sent */
	uint32_t n_asks;	       /* outstanding */
	struct desk_guest *prev, *next_guest;
};

/* --- requests ------------------------------------------------------------- */

static void end_other(struct peer_desk *d, const struct desk_guest *g)
{
	struct desk_guest *other;

	DL_FOREACH2(d->guests, other, next_guest)
	{
		if (other != g && other->met && other->node == g->node)
			conn_end(other->conn, -ECONNRESET);
	}
}

/* Once for each reason: a node may try as often as it likes. */
static void tell_refusal(struct peer_desk *d, const struct desk_guest *g)
{
	uint32_t *told = &d->told[g->node % PLACE_NODES], bit = 1u << g->reason;

	if (!(*told & bit))
		log_warn("peer: refused node %u: %s", g->node,
			 peer_reason_text(g->reason));
	*told |= bit;
}

static int take_hello(struct desk_guest *g, const struct peer_msg *m)
{
	struct peer_desk *d = g->desk;

	if (m->type != PEER_HELLO)
		return -EPROTO;
	/* it claims a number: that of any node but this one */
	g->node = m->hello.node;
	g->reason =
		g->node < d->shared->hello.nodes
			? peer_compare(&d->shared->hello, &m->hello, g->node)
			: PEER_OTHER_NODES;
	g->met = g->reason == PEER_FITS;
	g->next = g->met ? PEER_WELCOME : PEER_REFUSE;
	conn_kick(g->conn);
	if (!g->met) {
		tell_refusal(d, g);
		return 0;
	}
	conn_trust(g->conn, CONN_FIRST);
	end_other(d, g);
	d->met(d->owner, g->node);
	return 0;
}

static int take_get(struct desk_guest *g, const struct peer_msg *m)
{
	struct peer_desk *d = g->desk;
	struct peer_ask *a;

	if (m->type != PEER_GET || g->n_asks == PEER_MOST_GETS)
		return -EPROTO;
	a = calloc(1, d->ask_size);
	if (!a)
		return -ENOMEM;
	a->key = m->key;
	a->bytes = d->n_asks[g->node]++ < PEER_MOST_GETS ? m->bytes : 0;
	a->guest = g->number;
	a->node = g->node;
	a->id = m->id;
	g->n_asks++;
	d->serve(d->ctx, a);
	return 0;
}

static int message(struct conn *c, unsigned char *bytes, size_t n, uint64_t now)
{
	struct desk_guest *g = c->user;
	struct peer_msg m;
	int r = peer_decode(bytes, n, &m);

	(void)now;
	if (r < 0 || g->leaves || g->next == PEER_REFUSE)
		return -EPROTO;
	return g->met ? take_get(g, &m) : take_hello(g, &m);
}

/* --- replies -------------------------------------------------------------- */

static void let_go(struct peer_desk *d, struct peer_ask *a)
{
	d->n_asks[a->node]--;
	a->release(a);
}

void peer_desk_answer(struct peer_desk *d, struct peer_ask *a, uint64_t now)
{
	struct desk_guest *g;

	DL_SEARCH_SCALAR2(d->guests, g, number, a->guest, next_guest);
	if (!g) {
		let_go(d, a);
		return;
	}
	a->leaves = loop_leaves(d->shared->loop, now);
	a->next = NULL;
	*g->end = a;
	g->end = &a->next;
	conn_kick(g->conn);
}

static void count_served(struct peer_counts *c, const struct peer_ask *a)
{
	if (a->data) {
		peer_count(&c->served, 1);
		peer_count(&c->served_bytes, a->bytes);
	} else {
		peer_count(&c->served_notfound, 1);
	}
}

static int send_answer(struct desk_guest *g)
{
	struct peer_ask *a = g->first;
	const struct peer_msg m = { .type = a->data ? PEER_DATA : PEER_NOTFOUND,
				    .id = a->id };
	unsigned char head[PEER_HEAD];
	int r = conn_send(g->conn, head, peer_encode(&m, head), a->data,
			  a->data ? a->bytes : 0, a->leaves);

	g->first = a->next;
	if (!g->first)
		g->end = &g->first;
	g->n_asks--;
	if (r == 0)
		count_served(&g->desk->shared->counts, a);
	let_go(g->desk, a);
	return r;
}

static int send_next(struct desk_guest *g, uint64_t now)
{
	const struct peer_msg m = { .type = g->next,
				    .hello = g->desk->shared->hello,
				    .reason = g->reason };
	unsigned char head[PEER_HEAD];

	g->next = 0;
	g->leaves = !g->met;
	return conn_send(g->conn, head, peer_encode(&m, head), NULL, 0, now);
}

static uint64_t fill_guest(struct conn *c, uint64_t now)
{
	struct desk_guest *g = c->user;
	int r;

	if (g->leaves) /* its REFUSE was sent */
		r = -EPROTO;
	else if (g->next)
		r = send_next(g, now);
	else if (!g->first)
		return TICK_NEVER;
	else if (now < g->first->leaves)
		return g->first->leaves;
	else
		r = send_answer(g);
	if (r < 0)
		conn_end(c, r);
	return now;
}

/* --- life of a connection ------------------------------------------------- */

static void ended(struct conn *c, int why)
{
	struct desk_guest *g = c->user;

	peer_count_end(&g->desk->shared->counts, why, !g->met);
	while (g->first) {
		struct peer_ask *a = g->first;

		g->first = a->next;
		let_go(g->desk, a);
	}
	DL_DELETE2(g->desk->guests, g, prev, next_guest);
	free(g);
}

static const struct conn_ops guest_ops = {
	.message = message,
	.fill = fill_guest,
	.ended = ended,
};

int peer_desk_accept(struct peer_desk *d, struct conn *c)
{
	struct desk_guest *g = calloc(1, sizeof(*g));

	if (!g)
		return -ENOMEM;
	*g = (struct desk_guest){ .desk = d,
				  .conn = c,
				  .number = ++d->n_guests };
	g->end = &g->first;
	c->ops = &guest_ops;
	c->user = g;
	DL_APPEND2(d->guests, g, prev, next_guest);
	return 0;
}
