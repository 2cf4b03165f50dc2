/* SPDX-License-Identifier: MIT */
/*
 * A primal-dual algorithm. Each vertex has a price, and no edge's weight is
 * more than what both its ends pay; matched edges are tight, they cost just as
 * much. In each phase trees grow from all free vertices along tight edges, by
 * turns one that is not matched and one that is, so that vertices are outer (as
 * the roots) or inner:
 *
 *	free ---- inner ==== outer ---- inner ==== outer
 *
 * A tight edge between outer vertices of two trees makes a path between two
 * free vertices, on which matched and other edges change roles: one pair more.
 * Within one tree it closes an odd cycle, a blossom, which from then on is one
 * outer vertex. Where no edge is tight, outer prices fall and inner ones rise
 * until one is. When a free vertex pays nothing any more, the matching is best.
 *
 * Numbers: 0 is nobody, 1 to n are vertices, from n + 1 on are blossoms.
 * Between any two of them the tightest edge is kept, as the vertices at its
 * ends. Prices are twice what they are in books, so that they stay whole.
 */
#include "sched/solver/matching.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"

struct edge {
	uint32_t from, to; /* vertices; 0: there is none */
};

enum label { FREE, OUTER, INNER };

struct sched_node {
	int64_t price;	  /* of a blossom: what its inner edges do not pay */
	uint32_t top;	  /* the outermost blossom around; 0: not in use */
	uint32_t mate;	  /* the vertex at the other end of its matched edge */
	uint32_t parent;  /* the vertex from which it was reached, if inner */
	uint32_t nearest; /* the outer vertex with the tightest edge to it */
	uint32_t visit;	  /* the search that last came by */
	enum label label;
	/* of a blossom: around the cycle, from the one that is matched outside
	 * or, if free, is its root; an odd number */
	uint32_t *ring;
	size_t n_ring;
};

struct graph {
	size_t n, used, width; /* vertices; nodes; room for nodes, and nobody */
	const uint32_t *weight;
	struct sched_node *node;
	struct edge *edge;  /* width x width */
	uint32_t *child_of; /* width x (n + 1): the child with that vertex */
	uint32_t *rings;
	uint32_t *queue; /* outer vertices to look at */
	size_t n_queue;
	uint32_t visit;
};

static struct edge *edge_of(const struct graph *g, uint32_t a, uint32_t b)
{
	return &g->edge[a * g->width + b];
}

/* What its ends pay beyond its weight. */
static int64_t slack_of(const struct graph *g, const struct edge *e)
{
	return g->node[e->from].price + g->node[e->to].price -
	       2 * (int64_t)g->weight[(e->from - 1) * g->n + e->to - 1];
}

static uint32_t *child(const struct graph *g, uint32_t blossom, uint32_t vertex)
{
	return &g->child_of[blossom * (g->n + 1) + vertex];
}

/* The slack is that of the vertex's edge to it, or to a child of it. */
static void offer_nearest(struct graph *g, uint32_t vertex, int64_t slack,
			  uint32_t to)
{
	uint32_t *nearest = &g->node[to].nearest;

	if (!*nearest || slack < slack_of(g, edge_of(g, *nearest, to)))
		*nearest = vertex;
}

static void find_nearest(struct graph *g, uint32_t to)
{
	g->node[to].nearest = 0;
	for (uint32_t v = 1; v <= g->n; v++) {
		uint32_t top = g->node[v].top;

		if (edge_of(g, v, to)->from && top != to &&
		    g->node[top].label == OUTER)
			offer_nearest(g, v, slack_of(g, edge_of(g, v, to)), to);
	}
}

static void enqueue(struct graph *g, uint32_t node)
{
	const struct sched_node *b = &g->node[node];

	if (node <= g->n)
		g->queue[g->n_queue++] = node;
	for (size_t i = 0; node > g->n && i < b->n_ring; i++)
		enqueue(g, b->ring[i]);
}

static void set_top(struct graph *g, uint32_t node, uint32_t top)
{
	struct sched_node *b = &g->node[node];

	b->top = top;
	for (size_t i = 0; node > g->n && i < b->n_ring; i++)
		set_top(g, b->ring[i], top);
}

/* --- along paths ---------------------------------------------------------- */

static void reverse(uint32_t *v, size_t n)
{
	for (size_t i = 0; i < n / 2; i++) {
		uint32_t x = v[i];

		v[i] = v[n - 1 - i];
		v[n - 1 - i] = x;
	}
}

/* The place of a child, an even one: the ring is turned over if need be. */
static size_t even_place(struct sched_node *b, uint32_t node)
{
	size_t i = 0;

	while (b->ring[i] != node)
		i++;
	if (i % 2 == 0)
		return i;
	reverse(b->ring + 1, b->n_ring - 1);
	return b->n_ring - i;
}

/* Match a node with another, over their edge; within a blossom, the others are
 * matched along its ring. */
static void match(struct graph *g, uint32_t node, uint32_t with)
{
	const struct edge *e = edge_of(g, node, with);
	struct sched_node *b = &g->node[node];
	uint32_t first;
	size_t place;

	b->mate = e->to;
	if (node <= g->n)
		return;
	first = *child(g, node, e->from);
	place = even_place(b, first);
	for (size_t i = 0; i < place; i++)
		match(g, b->ring[i], b->ring[i ^ 1]);
	match(g, first, with);
	/* rotate: the first one is who is matched outside */
	reverse(b->ring, place);
	reverse(b->ring + place, b->n_ring - place);
	reverse(b->ring, b->n_ring);
}

/* The outer node above an outer one; 0: it is a root. */
static uint32_t above(const struct graph *g, uint32_t outer)
{
	uint32_t inner = g->node[g->node[outer].mate].top;

	return inner ? g->node[g->node[inner].parent].top : 0;
}

/* From the outer node up to the root, which gets a partner. */
static void augment(struct graph *g, uint32_t outer, uint32_t with)
{
	for (;;) {
		uint32_t inner = g->node[g->node[outer].mate].top;

		match(g, outer, with);
		if (!inner)
			return;
		with = inner;
		outer = g->node[g->node[inner].parent].top;
		match(g, inner, outer);
	}
}

/* The lowest node above both; 0: they are in different trees. */
static uint32_t meet(struct graph *g, uint32_t a, uint32_t b)
{
	g->visit++;
	while (a || b) {
		uint32_t next = a ? above(g, a) : 0;

		if (a && g->node[a].visit == g->visit)
			return a;
		g->node[a].visit = g->visit;
		a = b;
		b = next;
	}
	return 0;
}

/* --- blossoms ------------------------------------------------------------- */

/* Add the nodes from `outer` up to, and without, `root` to the ring. */
static void add_side(struct graph *g, struct sched_node *b, uint32_t outer,
		     uint32_t root)
{
	while (outer != root) {
		uint32_t inner = g->node[g->node[outer].mate].top;

		b->ring[b->n_ring++] = outer;
		b->ring[b->n_ring++] = inner;
		enqueue(g, inner);
		outer = g->node[g->node[inner].parent].top;
	}
}

/* The edges of a blossom are the tightest of its children's. */
static void take_edges(struct graph *g, uint32_t blossom, uint32_t node)
{
	for (uint32_t x = 1; x <= g->used; x++) {
		struct edge *best = edge_of(g, blossom, x);
		const struct edge *e = edge_of(g, node, x);

		if (e->from &&
		    (!best->from || slack_of(g, e) < slack_of(g, best))) {
			*best = *e;
			*edge_of(g, x, blossom) = *edge_of(g, x, node);
		}
	}
	for (uint32_t v = 1; v <= g->n; v++)
		if (*child(g, node, v))
			*child(g, blossom, v) = node;
}

/* The cycle from `root` to `x`, over to `y`, and back. */
static void shrink(struct graph *g, uint32_t root, uint32_t x, uint32_t y)
{
	uint32_t blossom = (uint32_t)g->n + 1;
	struct sched_node *b;

	while (blossom <= g->used && g->node[blossom].top)
		blossom++;
	g->used = MAX(g->used, blossom);
	b = &g->node[blossom];
	b->price = 0;
	b->label = OUTER;
	b->mate = g->node[root].mate;
	b->ring[0] = root;
	b->n_ring = 1;
	add_side(g, b, x, root);
	reverse(b->ring + 1, b->n_ring - 1);
	add_side(g, b, y, root);
	set_top(g, blossom, blossom);
	for (uint32_t i = 1; i <= g->used; i++)
		*edge_of(g, blossom, i) = *edge_of(g, i, blossom) =
			(struct edge){ 0 };
	memset(child(g, blossom, 0), 0, (g->n + 1) * sizeof(uint32_t));
	for (size_t i = 0; i < b->n_ring; i++)
		take_edges(g, blossom, b->ring[i]);
	find_nearest(g, blossom);
}

/* An inner blossom whose price is 0 falls apart: its children on the even way
 * from where it was reached to where it is matched stay in the tree. */
static void expand(struct graph *g, uint32_t blossom)
{
	struct sched_node *b = &g->node[blossom];
	uint32_t first;
	size_t place;

	for (size_t i = 0; i < b->n_ring; i++)
		set_top(g, b->ring[i], b->ring[i]);
	first = *child(g, blossom, edge_of(g, blossom, b->parent)->from);
	place = even_place(b, first);
	for (size_t i = 0; i < place; i += 2) {
		uint32_t inner = b->ring[i], outer = b->ring[i + 1];

		g->node[inner].parent = edge_of(g, outer, inner)->from;
		g->node[inner].label = INNER;
		g->node[inner].nearest = 0;
		g->node[outer].label = OUTER;
		find_nearest(g, outer);
		enqueue(g, outer);
	}
	g->node[first].label = INNER;
	g->node[first].parent = b->parent;
	for (size_t i = place + 1; i < b->n_ring; i++) {
		g->node[b->ring[i]].label = FREE;
		find_nearest(g, b->ring[i]);
	}
	b->top = 0;
}

/* --- a phase -------------------------------------------------------------- */

/* A tight edge from an outer node: true if the matching has grown. */
static bool use_edge(struct graph *g, const struct edge *e)
{
	uint32_t from = g->node[e->from].top, to = g->node[e->to].top, root;
	struct sched_node *other = &g->node[to];

	if (other->label == FREE) {
		uint32_t mate = g->node[other->mate].top;

		other->parent = e->from;
		other->label = INNER;
		other->nearest = g->node[mate].nearest = 0;
		g->node[mate].label = OUTER;
		enqueue(g, mate);
	} else if (other->label == OUTER) {
		root = meet(g, from, to);
		if (root) {
			shrink(g, root, from, to);
			return false;
		}
		augment(g, from, to);
		augment(g, to, from);
		return true;
	}
	return false;
}

/* Follow tight edges from all outer vertices in the queue. */
static bool grow(struct graph *g)
{
	for (size_t i = 0; i < g->n_queue; i++) {
		uint32_t v = g->queue[i];
		const uint32_t *weight = &g->weight[(v - 1) * g->n];
		const struct sched_node *from = &g->node[v];

		if (g->node[from->top].label == INNER)
			continue;
		for (uint32_t x = 1; x <= g->n; x++) {
			const struct sched_node *to = &g->node[x];
			int64_t slack = from->price + to->price -
					2 * (int64_t)weight[x - 1];

			if (!weight[x - 1] || from->top == to->top)
				continue;
			if (slack > 0)
				offer_nearest(g, v, slack, to->top);
			else if (use_edge(g, edge_of(g, v, x)))
				return true;
		}
	}
	g->n_queue = 0;
	return false;
}

/* How far prices may move until an edge is tight or a blossom at its end. */
static int64_t next_move(const struct graph *g)
{
	int64_t move = INT64_MAX;

	for (uint32_t x = 1; x <= g->used; x++) {
		const struct sched_node *a = &g->node[x];
		int64_t slack;

		if (a->top != x)
			continue;
		if (x > g->n && a->label == INNER)
			move = MIN(move, a->price / 2);
		if (!a->nearest || a->label == INNER)
			continue;
		slack = slack_of(g, edge_of(g, a->nearest, x));
		move = MIN(move, a->label == FREE ? slack : slack / 2);
	}
	return move;
}

/* False: a free vertex, as all outer ones, would pay less than nothing. */
static bool move_prices(struct graph *g, int64_t move)
{
	for (uint32_t v = 1; v <= g->n; v++)
		if (g->node[g->node[v].top].label == OUTER &&
		    g->node[v].price <= move)
			return false;
	for (uint32_t x = 1; x <= g->used; x++) {
		struct sched_node *a = &g->node[x];
		enum label label = g->node[a->top].label;
		int64_t by = label == OUTER ? -move : label == INNER ? move : 0;

		if (x <= g->n)
			a->price += by;
		else if (a->top == x)
			a->price -= 2 * by;
	}
	return true;
}

/* After prices have moved. */
static bool use_tight(struct graph *g)
{
	for (uint32_t x = 1; x <= g->used; x++) {
		const struct sched_node *a = &g->node[x];
		const struct edge *e;

		if (a->top != x || !a->nearest || g->node[a->nearest].top == x)
			continue;
		e = edge_of(g, a->nearest, x);
		if (slack_of(g, e) == 0 && use_edge(g, e))
			return true;
	}
	for (uint32_t x = (uint32_t)g->n + 1; x <= g->used; x++)
		if (g->node[x].top == x && g->node[x].label == INNER &&
		    g->node[x].price == 0)
			expand(g, x);
	return false;
}

/* One pair more; false: there is no better matching. */
static bool phase(struct graph *g)
{
	g->n_queue = 0;
	for (uint32_t x = 1; x <= g->used; x++) {
		struct sched_node *a = &g->node[x];

		a->label = FREE;
		a->nearest = 0;
	}
	for (uint32_t x = 1; x <= g->used; x++) {
		struct sched_node *a = &g->node[x];

		if (a->top != x || a->mate)
			continue;
		a->parent = 0;
		a->label = OUTER;
		enqueue(g, x);
	}
	if (!g->n_queue)
		return false;
	for (;;) {
		int64_t move;

		if (grow(g))
			return true;
		move = next_move(g);
		if (move == INT64_MAX || !move_prices(g, move))
			return false;
		if (use_tight(g))
			return true;
	}
}

/* --- all ------------------------------------------------------------------ */

static void begin_graph(struct graph *g)
{
	int64_t most = 0;

	for (uint32_t a = 1; a <= g->n; a++)
		for (uint32_t b = 1; b <= g->n; b++) {
			uint32_t w = g->weight[(a - 1) * g->n + b - 1];

			if (a == b || !w)
				continue;
			*edge_of(g, a, b) = (struct edge){ a, b };
			most = MAX(most, w);
		}
	for (uint32_t v = 1; v <= g->n; v++) {
		g->node[v].price = most;
		g->node[v].top = v;
		*child(g, v, v) = v;
	}
	for (uint32_t x = (uint32_t)g->n + 1; x < g->width; x++)
		g->node[x].ring = &g->rings[(x - g->n - 1) * g->n];
}

int matching_max(const uint32_t *weight, size_t n, uint32_t *ret)
{
	/* each blossom has three children or more: fewer than n / 2 at once */
	size_t width = n + n / 2 + 1;
	_cleanup_free_ struct sched_node *nodes = calloc(width, sizeof(*nodes));
	_cleanup_free_ struct edge *edges =
		calloc(width * width, sizeof(*edges));
	_cleanup_free_ uint32_t *children =
		calloc(width * (n + 1), sizeof(*children));
	_cleanup_free_ uint32_t *rings = calloc(n * n + 1, sizeof(*rings));
	_cleanup_free_ uint32_t *queue = calloc(n + 1, sizeof(*queue));
	struct graph g = { .n = n,
			   .used = n,
			   .width = width,
			   .weight = weight,
			   .node = nodes,
			   .edge = edges,
			   .child_of = children,
			   .rings = rings,
			   .queue = queue };

	if (!nodes || !edges || !children || !rings || !queue)
		return -ENOMEM;
	begin_graph(&g);
	while (phase(&g))
		;
	for (size_t v = 1; v <= n; v++)
		ret[v - 1] = nodes[v].mate ? nodes[v].mate - 1 : MATCHING_NONE;
	return 0;
}
