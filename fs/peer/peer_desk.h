/* SPDX-License-Identifier: MIT */
/*
 * The serving half of a node: connections from other nodes, and their requests
 * for objects that this node owns.
 *
 *	HELLO -> WELCOME, then GET -> `serve` ... desk_answer -> DATA, NOTFOUND
 *	HELLO -> REFUSE, and closed
 *
 * Another node has at most one connection to this one: a second one ends the
 * first. A connection buffers no bytes: pending replies are references to
 * objects, until the socket takes the next one. A node has PEER_MOST_GETS
 * requests that `serve` has not answered, however often it connects; further
 * ones are NOTFOUND.
 */
#ifndef GPEMU_FS_PEER_PEER_DESK_H
#define GPEMU_FS_PEER_PEER_DESK_H

#include "fs/peer/peer_shared.h"

/* A request, embedded in a larger struct of the user who serves it. */
struct peer_ask {
	uint64_t key;
	uint32_t bytes; /* that the other node expects; 0: reply NOTFOUND */
	/* the reply: the object's bytes, or NULL (not found) */
	const unsigned char *data;
	/* Called once, after the reply is sent or has become pointless; frees
	 * the struct. Any thread. */
	void (*release)(struct peer_ask *a);
	/* private */
	uint64_t guest, id, leaves;
	uint32_t node;
	struct peer_ask *next;
};

struct desk_guest;

struct peer_desk {
	struct peer_shared *shared;
	struct desk_guest *guests;    /* utlist */
	uint64_t n_guests;	      /* so far */
	size_t ask_size;	      /* bytes of the larger struct */
	uint32_t n_asks[PLACE_NODES]; /* of a node, not released yet */
	uint32_t told[PLACE_NODES]; /* of a node: bit r: refused for reason r */
	/* Serve it: reply now or later, from any thread (desk's owner). Does
	 * not block. `a` is zeroed but for key and bytes. */
	void (*serve)(void *ctx, struct peer_ask *a);
	void *ctx;
	/* A node has connected. */
	void (*met)(void *owner, uint32_t node);
	void *owner;
};

/* Take an accepted connection. -ENOMEM. */
int peer_desk_accept(struct peer_desk *d, struct conn *c);
/* The reply is ready. */
void peer_desk_answer(struct peer_desk *d, struct peer_ask *a, uint64_t now);

#endif
