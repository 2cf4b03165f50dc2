/* SPDX-License-Identifier: MIT */
#include "net/gradients.h"

#include <errno.h>
#include <stdlib.h>

#include "common/units.h"
#include "common/util.h"

enum {
	/* Of the time by which a walk is late, a piece takes at most 1/this.
	 * arbitrary: an hour takes 20,000 pieces, a millisecond of work, and
	 * chains share it to 1 % */
	PIECES_LATE = 1024,
	/* Pieces of all that is ahead. arbitrary: some milliseconds of work,
	 * and chains share it to 0.1 % */
	PIECES_AHEAD = 1 << 15,
};

void gradients_fini(struct gradients *g)
{
	for (size_t i = 0; i < g->n; i++)
		free(g->chain[i].bucket);
	g->n = 0;
}

/* --- pieces --------------------------------------------------------------- */

static bool is_over(const struct gradients_chain *c)
{
	return c->next == c->n;
}

/* The next bucket can pass. */
static void begin(struct gradients_chain *c)
{
	const struct gradients_bucket *b = &c->bucket[c->next];

	c->out = c->in =
		(struct gradients_way){ .left = b->bytes,
					.ready = MAX(b->ready_ns, c->end) };
}

/* The time of the first `n` of `left` bytes. Summed up over the pieces of a
 * bucket it is that of the bucket, to the ns. */
static uint64_t piece_ns(double bytes_per_s, uint64_t left, uint64_t n)
{
	return link_ns(bytes_per_s, left) - link_ns(bytes_per_s, left - n);
}

static void pass(struct gradients_chain *c, struct gradients_way *w,
		 struct link *l, size_t piece)
{
	const struct gradients_bucket *b = &c->bucket[c->next];
	uint64_t n = MIN(w->left, piece), start = w->ready, free = 0;

	if (l->bytes_per_s > 0) {
		start = MAX(start, l->busy_ns);
		free = start + piece_ns(l->bytes_per_s, w->left, n);
		l->busy_ns = free;
	}
	w->ready = MAX(start + piece_ns(b->bytes_per_s, w->left, n), free);
	w->left -= n;
	if (c->out.left || c->in.left)
		return;
	c->end = MAX(c->out.ready, c->in.ready) + b->latency_ns;
	c->next++;
	if (!is_over(c))
		begin(c);
}

/* The direction whose next piece is ready first; NULL: none. */
static struct gradients_way *first(struct gradients *g,
				   struct gradients_chain **ret)
{
	struct gradients_way *found = NULL;

	for (size_t i = 0; i < g->n; i++) {
		struct gradients_chain *c = &g->chain[i];
		struct gradients_way *way[] = { &c->out, &c->in };

		for (int k = 0; k < 2 && !is_over(c); k++) {
			if (!way[k]->left ||
			    (found && found->ready <= way[k]->ready))
				continue;
			found = way[k];
			*ret = c;
		}
	}
	return found;
}

/* The size of a piece that was ready `late_ns` before the time of the walk. It
 * grows by powers of two, so that chains that take turns pass equally much. */
static size_t piece_at(const struct gradients_bucket *b, const struct link *l,
		       size_t piece, uint64_t late_ns)
{
	double rate = l->bytes_per_s, most;

	if (b->bytes_per_s > 0 && (rate <= 0 || b->bytes_per_s < rate))
		rate = b->bytes_per_s;
	if (rate <= 0) /* it takes no time */
		return GRADIENTS_BYTES;
	most = rate * (double)late_ns / NS_PER_S / PIECES_LATE;
	while (piece < GRADIENTS_BYTES && (double)piece * 2 <= most)
		piece *= 2;
	return piece;
}

bool gradients_idle(const struct gradients *g)
{
	for (size_t i = 0; i < g->n; i++)
		if (!is_over(&g->chain[i]))
			return false;
	return true;
}

void gradients_book(struct gradients *g, struct link *out, struct link *in,
		    size_t piece, uint64_t until)
{
	struct gradients_chain *c;
	struct gradients_way *w;

	while ((w = first(g, &c)) && w->ready <= until) {
		struct link *l = w == &c->out ? out : in;

		pass(c, w, l,
		     piece_at(&c->bucket[c->next], l, piece, until - w->ready));
	}
}

void gradients_copy(const struct gradients *g, struct gradients_bucket *room,
		    struct gradients *ret)
{
	*ret = *g;
	for (size_t i = 0; i < g->n; i++) {
		struct gradients_chain *c = &ret->chain[i];

		for (size_t k = c->next; k < c->n; k++)
			room[k - c->next] = c->bucket[k];
		c->bucket = room;
		c->n -= c->next;
		c->next = 0;
		room += c->n;
	}
}

void gradients_delays(struct gradients *g, struct link *out, struct link *in,
		      size_t piece, uint64_t ret_ns[GRADIENTS_CHAINS])
{
	struct gradients_chain *c;
	struct gradients_way *w;
	uint64_t bytes = 0;

	for (size_t i = 0; i < g->n; i++)
		for (size_t k = 0; k < g->chain[i].n; k++)
			bytes += g->chain[i].bucket[k].bytes;
	piece = MAX(piece, bytes / PIECES_AHEAD);
	while ((w = first(g, &c)))
		pass(c, w, w == &c->out ? out : in, piece);
	for (size_t i = 0; i < g->n; i++)
		ret_ns[i] = g->chain[i].end - g->chain[i].alone;
}

/* --- chains --------------------------------------------------------------- */

/* The chain `id`; else a new one, in place of the one that has been over for
 * longest where there is no room. NULL: no room. */
static struct gradients_chain *chain_of(struct gradients *g, uint64_t id)
{
	struct gradients_chain *old = NULL;

	for (size_t i = 0; i < g->n; i++) {
		struct gradients_chain *c = &g->chain[i];

		if (c->id == id)
			return c;
		if (is_over(c) && (!old || c->end < old->end))
			old = c;
	}
	if (g->n < GRADIENTS_CHAINS)
		old = &g->chain[g->n++];
	if (old) {
		old->id = id;
		old->next = old->n = 0;
		old->end = old->alone = 0;
	}
	return old;
}

int gradients_add(struct gradients *g, uint64_t id,
		  const struct gradients_bucket *b)
{
	struct gradients_chain *c;
	bool idle;

	if (!b->bytes || b->bytes > GRADIENTS_BYTES)
		return -EINVAL;
	c = chain_of(g, id);
	if (!c)
		return -EBUSY;
	idle = is_over(c);
	if (idle)
		c->next = c->n = 0;
	if (c->n == GRADIENTS_BUCKETS)
		return -E2BIG;
	if (util_reserve(&c->bucket, &c->room, c->n + 1, sizeof(*c->bucket)) <
	    0)
		return -ENOMEM;
	c->bucket[c->n++] = *b;
	c->alone = MAX(c->alone, b->ready_ns) +
		   link_ns(b->bytes_per_s, b->bytes) + b->latency_ns;
	if (idle)
		begin(c);
	return 0;
}
