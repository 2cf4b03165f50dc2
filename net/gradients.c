/* SPDX-License-Identifier: MIT */
#include "net/gradients.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "common/util.h"

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

void gradients_book(struct gradients *g, struct link *out, struct link *in,
		    size_t piece, uint64_t until)
{
	struct gradients_chain *c;
	struct gradients_way *w;

	while ((w = first(g, &c)) && w->ready <= until)
		pass(c, w, w == &c->out ? out : in, piece);
}

uint64_t gradients_delay(const struct gradients *g, const struct link *out,
			 const struct link *in, size_t piece, size_t k)
{
	struct gradients future = *g; /* shares the buckets */
	struct link o = *out, i = *in;

	gradients_book(&future, &o, &i, piece, UINT64_MAX);
	return future.chain[k].end - future.chain[k].alone;
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
