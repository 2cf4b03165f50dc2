/* SPDX-License-Identifier: MIT */
/*
 * An emulated network card: real bytes on real sockets leave and arrive no
 * faster than the card allows. The two directions are independent; all
 * connections of the node share them. A piece of a message is first given the
 * time at which its last bit passes, then waits for it. The next piece is timed
 * from there and not from when the timer fired, so late timers cost no
 * bandwidth.
 *
 *	message ready --latency--> [ out ]--bytes/rate--> socket
 *	socket --> [ in ]--bytes/rate--> message
 *
 * The gradients of the node's rank pass the same card, both ways at once, like
 * one more connection.
 *
 * The bytes of frames count, TCP/IP and Ethernet headers do not. Times are
 * arguments, in emulated ns. Any thread may call these functions.
 */
#ifndef GPEMU_NET_NIC_H
#define GPEMU_NET_NIC_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "emu/gpu/link.h"

enum {
	/* arbitrary: ranks of runs that share a mount */
	GRADIENTS_CHAINS = 8,
	/* arbitrary: 100 GiB of gradients in buckets of 25 MiB */
	GRADIENTS_BUCKETS = 4096,
	/* Source: twice the largest bucket of emu/gpu/collective.c, as a tree
	 * sends it */
	GRADIENTS_BYTES = 64 << 20,
};

struct gradients_bucket {
	uint64_t ready_ns;
	uint64_t bytes;	     /* 1..GRADIENTS_BYTES, in each direction */
	double bytes_per_s;  /* no faster than that; 0: as the card */
	uint64_t latency_ns; /* after the bytes */
};

/* A direction of the bucket that is passing. */
struct gradients_way {
	uint64_t left;	/* bytes */
	uint64_t ready; /* of the next piece */
};

struct gradients_chain {
	uint64_t id;
	struct gradients_bucket *bucket; /* [next, n) are not over */
	size_t next, n, room;
	struct gradients_way out, in; /* of `next` */
	uint64_t end;		      /* of those before `next` */
	uint64_t alone; /* the end of all, without other traffic */
};

struct gradients {
	struct gradients_chain chain[GRADIENTS_CHAINS];
	size_t n;
};

struct nic {
	struct link out, in;	 /* lock */
	uint64_t latency_ns;	 /* one way */
	size_t piece;		 /* bytes that are timed together */
	uint64_t sent, received; /* atomic: bytes so far */
	pthread_mutex_t lock;
	struct gradients gradients; /* lock */
};

/* A card without limit. NULL: no memory. */
struct nic *nic_new(void);
void nic_free(struct nic *n);
/* Before its use. bytes_per_s 0: no limit. */
void nic_limit(struct nic *n, double bytes_per_s, uint64_t latency_ns);

/*
 * A whole message in closed form, for simulators; calls in order of time. It is
 * ready at `now`: when its last bit has left the card, and, in *ret_first, when
 * its first piece has, and can pass the card of the receiver.
 */
uint64_t nic_send(struct nic *n, uint64_t now, size_t bytes,
		  uint64_t *ret_first);
/* Its first piece arrives at `now`, its last bit left the sender at `sent`:
 * when all of it has passed the receiver's card. */
uint64_t nic_receive(struct nic *n, uint64_t now, uint64_t sent, size_t bytes);

/* The part of a connection in one direction of the card. */
struct nic_flow {
	size_t booked;	 /* bytes that may pass at... */
	uint64_t at;	 /* this time */
	uint64_t before; /* end of the piece before; 0: it was idle */
};

/* Book up to `n` bytes that have been ready since `ready`, unless some are
 * booked already. `l`: n->out or n->in. */
void nic_book(struct nic *nic, struct link *l, struct nic_flow *f, size_t n,
	      uint64_t ready, uint64_t now);
/* `n` of the booked bytes have passed; adds to *count, one of the card's. */
void nic_pass(struct nic_flow *f, size_t n, uint64_t *count);
/* There is nothing to pass now. */
void nic_idle(struct nic_flow *f);

/* As gradients_add, for the all-reduces of `id`; what was ready before `now`
 * has its place. */
int nic_reduce(struct nic *n, uint64_t id, const struct gradients_bucket *b,
	       uint64_t now);
struct nic_delay {
	uint64_t id, ns;
};
/* How much later than alone on the card the buckets of each chain are reduced,
 * as far as the traffic is known. Returns their number, or -ENOMEM. */
int nic_delays(struct nic *n, struct nic_delay ret[GRADIENTS_CHAINS]);

#endif
