/* SPDX-License-Identifier: MIT */
#include "net/nic.h"

#include <errno.h>
#include <stdlib.h>

#include "common/units.h"
#include "common/util.h"

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
	pthread_mutex_lock(&nic->lock);
	book_gradients(nic, ready);
	f->at = link_send(l, ready, f->booked);
	pthread_mutex_unlock(&nic->lock);
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
	int r;

	pthread_mutex_lock(&n->lock);
	book_gradients(n, now);
	r = gradients_add(&n->gradients, id, b);
	pthread_mutex_unlock(&n->lock);
	return r;
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
