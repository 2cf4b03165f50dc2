/* SPDX-License-Identifier: MIT */
/*
 * An emulated network card: real bytes on real sockets leave and arrive no
 * faster than the card, each direction by itself, shared by all connections of
 * the node. A piece of a message first gets the time at which its last bit
 * passes; then it waits for that time. As the next piece is timed from there
 * and not from when the timer fired, late timers cost no bandwidth.
 *
 *	message ready --latency--> [ out ]--bytes/rate--> socket
 *	socket --> [ in ]--bytes/rate--> message
 *
 * Headers of TCP/IP and Ethernet are not counted: bytes are those of the
 * frames. Pure: times are arguments, emulated ns.
 */
#ifndef GPEMU_NET_NIC_H
#define GPEMU_NET_NIC_H

#include <stddef.h>

#include "emu/gpu/link.h"

struct nic {
	struct link out, in;
	uint64_t latency_ns;	 /* one way */
	size_t piece;		 /* bytes that are timed together */
	uint64_t sent, received; /* atomic: bytes so far */
};

/* bytes_per_s 0: no limit. */
void nic_init(struct nic *n, double bytes_per_s, uint64_t latency_ns);

/* The part of a connection in one direction of the card. */
struct nic_flow {
	size_t booked;	 /* bytes that may pass at... */
	uint64_t at;	 /* this time */
	uint64_t before; /* end of the piece before; 0: it was idle */
};

/* Book up to `n` bytes that are ready since `ready`, unless some are booked
 * already. */
void nic_book(const struct nic *nic, struct link *l, struct nic_flow *f,
	      size_t n, uint64_t ready, uint64_t now);
/* `n` of the booked bytes have passed; adds to *count, one of the card's. */
void nic_pass(struct nic_flow *f, size_t n, uint64_t *count);
/* There is nothing to pass now. */
void nic_idle(struct nic_flow *f);

#endif
