/* SPDX-License-Identifier: MIT */
/*
 * One node of a partitioned cache: it requests objects from their owners, and
 * serves those that it owns. The seed determines the owners (fs/peer/place.h).
 *
 *	receivers --peers_want--> [ queue ] --> thread of the loop --> links
 *	                                             |
 *	any thread --peers_answer-> [ queue ] -------'--> desk
 *
 * docs/peers.md describes protocol, limits and threats.
 */
#ifndef GPEMU_FS_PEER_PEERS_H
#define GPEMU_FS_PEER_PEERS_H

#include <jansson.h>

#include "fs/peer/peer_desk.h"

struct fetch;
struct peers;

struct peers_config {
	struct tick *tick; /* borrowed, as is all below */
	const struct peer_net *net;
	const struct tree *tree;
	uint64_t seed;
	uint64_t capacity_bytes; /* of the cache of each node */
	size_t extent_bytes;
	/* On the thread of the loop: a fetch that no peer serves. */
	void (*miss)(void *ctx, struct fetch *f);
	/* The same: a request of another node; reply with peers_answer. */
	void (*serve)(void *ctx, struct peer_ask *a);
	size_t ask_size; /* of the struct whose first member is a peer_ask */
	void *ctx;
};

/* Listens; peers_start connects and serves. -ENOMEM, -EFBIG (too many objects),
 * -EINVAL, -EADDRINUSE and the like; with a text. */
int peers_new(const struct peers_config *c, struct peers **ret,
	      struct err *err);
/* Once `miss` and `serve` may be called. -EAGAIN: no thread. */
int peers_start(struct peers *p, struct err *err);
/*
 * End all connections. Fetches end with `stopping`; later ones are not taken.
 * Requests are released, and so are replies that come later.
 */
void peers_stop(struct peers *p);
/* Stops first. All requests must be replied to. NULL is allowed. */
void peers_free(struct peers *p);

/* A future may replace its content (fs/peer/foresee.h). */
struct place *peers_place(const struct peers *p);
/* Does another node own the object, and is it connected? Any thread. */
bool peers_have(const struct peers *p, uint64_t key);
/*
 * Get the object that `f` fetches, whole, from its owner: f->done follows, or
 * `miss`, or during peers_stop f->done with `stopping`. false: not taken, like
 * where peers_have is false. Any thread.
 */
bool peers_want(struct peers *p, struct fetch *f);
/* Reply to a request (a->data is set). Any thread. */
void peers_answer(struct peers *p, struct peer_ask *a);

/* A copy of the counters, and how many nodes are connected. */
struct peer_counts peers_counts(const struct peers *p, uint64_t *ret_connected);
void peers_reset(struct peers *p);
/* Bytes of the network so far. */
void peers_bytes(const struct peers *p, uint64_t *ret_in, uint64_t *ret_out);
/* Into the part of the stats: "peers", a list, and "wait_us". */
void peers_json(const struct peers *p, json_t *part);

#endif
