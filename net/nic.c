/* SPDX-License-Identifier: MIT */
#include "net/nic.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "common/thread.h"
#include "common/units.h"
#include "common/util.h"

/*
 * --- all-reduces ----------------------------------------------------------
 *
 * All-reduces on a network card that other traffic shares. Each is a chain of
 * buckets (emu/gpu/collective.h): bytes that pass the card in both directions
 * at once, piece by piece, like a connection that always has the next piece
 * ready; then a latency.
 *
 *	bucket 0 |-----------|lat|
 *	bucket 1               |.|---------------|lat|
 *	others       |-|                 |-| |-|
 *
 * No thread sends them. Whoever books a piece of other traffic first books the
 * pieces of gradients that were ready before it; so both get the shares that
 * two connections get. Alone on the card a chain takes exactly the time of
 * collective_each.
 *
 * Pure: times are arguments, in emulated ns. The card's owner locks.
 */

enum {
	/* Of the time by which a walk is late, a piece takes at most 1/this.
	 * arbitrary: an hour takes 20,000 pieces, a millisecond of work, and
	 * chains share it to 1 % */
	PIECES_LATE = 1024,
	/* Pieces of all that is ahead. arbitrary: some milliseconds of work,
	 * and chains share it to 0.1 % */
	PIECES_AHEAD = 1 << 15,
};

static void gradients_fini(struct gradients *g)
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
static void begin_bucket(struct gradients_chain *c)
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

static void pass_piece(struct gradients_chain *c, struct gradients_way *w,
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
		begin_bucket(c);
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

/* Is no bucket left? */
static bool gradients_idle(const struct gradients *g)
{
	for (size_t i = 0; i < g->n; i++)
		if (!is_over(&g->chain[i]))
			return false;
	return true;
}

/* Book the pieces that are ready at `until`; larger ones the longer ago that
 * is, so that a long pause costs no long walk. */
static void gradients_book(struct gradients *g, struct link *out,
			   struct link *in, size_t piece, uint64_t until)
{
	struct gradients_chain *c;
	struct gradients_way *w;

	while ((w = first(g, &c)) && w->ready <= until) {
		struct link *l = w == &c->out ? out : in;

		pass_piece(c, w, l,
			   piece_at(&c->bucket[c->next], l, piece,
				    until - w->ready));
	}
}

/* A copy for gradients_delays. Its buckets are in `room`, which has space for
 * those of all chains; not for gradients_fini. */
static void gradients_copy(const struct gradients *g,
			   struct gradients_bucket *room, struct gradients *ret)
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

/* How much later than alone the buckets of each chain are reduced, if nothing
 * else comes. Uses up the copy and the links. */
static void gradients_delays(struct gradients *g, struct link *out,
			     struct link *in, size_t piece,
			     uint64_t ret_ns[GRADIENTS_CHAINS])
{
	struct gradients_chain *c;
	struct gradients_way *w;
	uint64_t bytes = 0;

	for (size_t i = 0; i < g->n; i++)
		for (size_t k = 0; k < g->chain[i].n; k++)
			bytes += g->chain[i].bucket[k].bytes;
	piece = MAX(piece, bytes / PIECES_AHEAD);
	while ((w = first(g, &c)))
		pass_piece(c, w, w == &c->out ? out : in, piece);
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

/* Add a bucket to the chain `id`, after its others. -EINVAL (bytes), -E2BIG,
 * -EBUSY: all GRADIENTS_CHAINS are in use; -ENOMEM. */
static int gradients_add(struct gradients *g, uint64_t id,
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
		begin_bucket(c);
	return 0;
}

/* arbitrary: pieces of 50 us need 20,000 timers a second, and share the card
 * fairly between connections */
enum { LEAST_PIECE = 16 << 10, MOST_PIECE = 64 << 10, PIECES_PER_S = 20000 };

/* Of a card without limit, which times nothing: fewer system calls. measured:
 * send(2) over loopback, seconds of the sender's CPU for a GB: .6 in pieces of
 * 64 KiB, .26 of 256 KiB, .18 of 1 MiB; 2 cores, 2026-11 */
enum { FREE_PIECE = 512 << 10 };

/* A flow that pauses for longer counts as idle. arbitrary: timers are rarely
 * later */
#define MOST_LATE_NS (10 * NS_PER_MS)

struct nic *nic_new(void)
{
	struct nic *n = calloc(1, sizeof(*n));

	if (!n)
		return NULL;
	n->piece = FREE_PIECE;
	pthread_mutex_init(&n->lock, NULL);
	return n;
}

void nic_free(struct nic *n)
{
	if (!n)
		return;
	gradients_fini(&n->gradients);
	pthread_mutex_destroy(&n->lock);
	free(n);
}

void nic_limit(struct nic *n, double bytes_per_s, uint64_t latency_ns)
{
	double piece = bytes_per_s / PIECES_PER_S;

	n->out.bytes_per_s = n->in.bytes_per_s = bytes_per_s;
	n->latency_ns = latency_ns;
	n->piece = bytes_per_s > 0 ? MOST_PIECE : FREE_PIECE;
	if (piece > 0 && piece < MOST_PIECE)
		n->piece = MAX((size_t)piece, LEAST_PIECE);
}

static void book_gradients(struct nic *n, uint64_t until)
{
	gradients_book(&n->gradients, &n->out, &n->in, n->piece, until);
}

/* As link_send, by turns with the gradients that become ready meanwhile.
 * *ret_first: its first piece has passed. */
static uint64_t take_turns(struct nic *n, struct link *l, uint64_t ready,
			   size_t bytes, uint64_t *ret_first)
{
	size_t now = MIN(bytes, n->piece);
	uint64_t end = *ret_first = link_send(l, ready, now);

	while ((bytes -= now) > 0 && !gradients_idle(&n->gradients)) {
		book_gradients(n, end);
		now = MIN(bytes, n->piece);
		end = link_send(l, end, now);
	}
	return bytes > 0 ? link_send(l, end, bytes) : end;
}

/* What fits in a piece waits for one piece of another message at most, not for
 * all that is left of it. */
static uint64_t pass(struct nic *n, struct link *l, uint64_t ready,
		     size_t bytes, uint64_t *ret_first)
{
	uint64_t piece = link_ns(l->bytes_per_s, n->piece), begin, end, early;

	book_gradients(n, ready);
	begin = MAX(ready, l->busy_ns);
	end = take_turns(n, l, ready, bytes, ret_first);
	if (bytes > n->piece || begin <= ready + piece)
		return end;
	early = begin - (ready + piece);
	*ret_first -= early;
	return end - early;
}

uint64_t nic_send(struct nic *n, uint64_t now, size_t bytes,
		  uint64_t *ret_first)
{
	n->sent += bytes;
	return pass(n, &n->out, now + n->latency_ns, bytes, ret_first);
}

uint64_t nic_receive(struct nic *n, uint64_t now, uint64_t sent, size_t bytes)
{
	size_t part = bytes % n->piece;
	uint64_t last = link_ns(n->in.bytes_per_s, part ? part : n->piece);
	uint64_t first, end = pass(n, &n->in, now, bytes, &first);

	n->received += bytes;
	return MAX(end, sent + last);
}

void nic_book(struct nic *nic, struct link *l, struct nic_flow *f, size_t n,
	      uint64_t ready, uint64_t now)
{
	if (f->booked)
		return;
	if (f->before)
		ready = MAX(ready, f->before);
	if (now > MOST_LATE_NS)
		ready = MAX(ready, now - MOST_LATE_NS);
	ready = MIN(ready, now);
	f->booked = MIN(n, nic->piece);
	LOCK_SCOPE(&nic->lock);
	book_gradients(nic, ready);
	f->at = link_send(l, ready, f->booked);
}

void nic_pass(struct nic_flow *f, size_t n, uint64_t *count)
{
	__atomic_fetch_add(count, n, __ATOMIC_RELAXED);
	f->booked -= n;
	f->before = f->at;
}

void nic_idle(struct nic_flow *f)
{
	f->before = 0;
}

int nic_reduce(struct nic *n, uint64_t id, const struct gradients_bucket *b,
	       uint64_t now)
{
	LOCK_SCOPE(&n->lock);
	book_gradients(n, now);
	return gradients_add(&n->gradients, id, b);
}

/* The walk over all that is ahead takes milliseconds: without the lock. */
int nic_delays(struct nic *n, struct nic_delay ret[GRADIENTS_CHAINS])
{
	_cleanup_free_ struct gradients_bucket *room =
		malloc(sizeof(*room) * GRADIENTS_CHAINS * GRADIENTS_BUCKETS);
	uint64_t delay[GRADIENTS_CHAINS];
	struct gradients g;
	struct link out, in;

	if (!room)
		return -ENOMEM;
	pthread_mutex_lock(&n->lock);
	out = n->out;
	in = n->in;
	gradients_copy(&n->gradients, room, &g);
	pthread_mutex_unlock(&n->lock);
	gradients_delays(&g, &out, &in, n->piece, delay);
	for (size_t i = 0; i < g.n; i++)
		ret[i] = (struct nic_delay){ g.chain[i].id, delay[i] };
	return (int)g.n;
}
