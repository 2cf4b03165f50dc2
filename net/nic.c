/* SPDX-License-Identifier: MIT */
#include "net/nic.h"

#include "common/units.h"
#include "common/util.h"

/* arbitrary: pieces of 50 us need 20,000 timers a second, and share the card
 * fairly between connections */
enum { LEAST_PIECE = 16 << 10, MOST_PIECE = 64 << 10, PIECES_PER_S = 20000 };

/* A flow that pauses for longer counts as idle. arbitrary: timers are rarely
 * later */
#define MOST_LATE_NS (10 * NS_PER_MS)

void nic_init(struct nic *n, double bytes_per_s, uint64_t latency_ns)
{
	double piece = bytes_per_s / PIECES_PER_S;

	*n = (struct nic){ .out.bytes_per_s = bytes_per_s,
			   .in.bytes_per_s = bytes_per_s,
			   .latency_ns = latency_ns,
			   .piece = MOST_PIECE };
	if (piece > 0 && piece < MOST_PIECE)
		n->piece = MAX((size_t)piece, LEAST_PIECE);
}

void nic_book(const struct nic *nic, struct link *l, struct nic_flow *f,
	      size_t n, uint64_t ready, uint64_t now)
{
	if (f->booked)
		return;
	if (f->before)
		ready = MAX(ready, f->before);
	if (now > MOST_LATE_NS)
		ready = MAX(ready, now - MOST_LATE_NS);
	f->booked = MIN(n, nic->piece);
	f->at = link_send(l, MIN(ready, now), f->booked);
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
