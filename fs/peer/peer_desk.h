/* SPDX-License-Identifier: MIT */
/*
 * The answers of a node: the connections of other nodes to it, and their
 * questions for objects that it owns.
 *
 *	HELLO -> WELCOME, then GET -> `serve` ... desk_answer -> DATA, NOTFOUND
 *	HELLO -> REFUSE, and closed
 *
 * A node has one connection to this one: another one ends the first. A
 * connection holds no bytes: its answers wait as references to objects until
 * the socket takes the next one. A node has PEER_MOST_GETS questions that
 * `serve` has not answered, however often it connects; others are NOTFOUND.
 */
#ifndef GPEMU_FS_PEER_PEER_DESK_H
#define GPEMU_FS_PEER_PEER_DESK_H

#include "fs/peer/peer_shared.h"

/* A question, in a larger struct of the one who answers it. */
struct peer_ask {
	uint64_t key;
	uint32_t bytes; /* that the other node expects; 0: answer NOTFOUND */
	/* the answer: the object's bytes, or NULL (not found) */
	const unsigned char *data;
	/* Called once, after the answer was sent, or when nobody wants it any
	 * more; frees the struct. Any thread. */
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
	/* Answer it, now or later, from any thread (desk's owner). Returns at
	 * once. `a` is zeroed but for key and bytes. */
	void (*serve)(void *ctx, struct peer_ask *a);
	void *ctx;
	/* A node has connected. */
	void (*met)(void *owner, uint32_t node);
	void *owner;
};

/* Take an accepted connection. -ENOMEM. */
int peer_desk_accept(struct peer_desk *d, struct conn *c);
/* The answer is there. */
void peer_desk_answer(struct peer_desk *d, struct peer_ask *a, uint64_t now);

#endif
