/* SPDX-License-Identifier: MIT */
/*
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
#ifndef GPEMU_NET_GRADIENTS_H
#define GPEMU_NET_GRADIENTS_H

#include <stdbool.h>
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

void gradients_fini(struct gradients *g);

/* Add a bucket to the chain `id`, after its others. -EINVAL (bytes), -E2BIG,
 * -EBUSY: all GRADIENTS_CHAINS are in use; -ENOMEM. */
int gradients_add(struct gradients *g, uint64_t id,
		  const struct gradients_bucket *b);
/* Is no bucket left? */
bool gradients_idle(const struct gradients *g);
/* Book the pieces that are ready at `until`; larger ones the longer ago that
 * is, so that a long pause costs no long walk. */
void gradients_book(struct gradients *g, struct link *out, struct link *in,
		    size_t piece, uint64_t until);
/* A copy for gradients_delays. Its buckets are in `room`, which has space for
 * those of all chains; not for gradients_fini. */
void gradients_copy(const struct gradients *g, struct gradients_bucket *room,
		    struct gradients *ret);
/* How much later than alone the buckets of each chain are reduced, if nothing
 * else comes. Uses up the copy and the links. */
void gradients_delays(struct gradients *copy, struct link *out, struct link *in,
		      size_t piece, uint64_t ret_ns[GRADIENTS_CHAINS]);

#endif
