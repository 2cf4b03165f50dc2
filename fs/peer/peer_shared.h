/* SPDX-License-Identifier: MIT */
/* What the two halves of a node share: requesting (peers.h) and serving
 * (peer_desk.h). All on the thread of the loop, except the counters. */
#ifndef GPEMU_FS_PEER_PEER_SHARED_H
#define GPEMU_FS_PEER_PEER_SHARED_H

#include <errno.h>

#include "common/hist.h"
#include "fs/peer/peer_net.h"
#include "fs/peer/peer_proto.h"
#include "net/loop.h"

struct fetch;

/* Atomic. */
struct peer_counts {
	uint64_t hits, hit_bytes; /* objects that came from their owner */
	uint64_t notfound;	  /* their owner does not have them */
	uint64_t unanswered;	  /* their owner disconnected or was slow */
	uint64_t skipped;	  /* their owner was not connected, or had too
				   * many requests pending */
	uint64_t lost;		  /* connections to owners that ended */
	uint64_t timeouts;	  /* of all connections: ended as too slow */
	uint64_t refused;	  /* connections that broke the protocol */
	uint64_t served, served_bytes, served_notfound;
};

struct peer_shared {
	const struct peer_net *net;
	struct tick *tick;
	struct loop *loop;
	struct peer_hello hello; /* of this node */
	size_t most_data;	 /* bytes of the largest object */
	uint64_t timeout_ns;	 /* emulated */
	struct peer_counts counts;
	struct hist waits; /* emulated ns from request to object */
	/* The owner does not serve it: read it elsewhere. */
	void (*miss)(void *ctx, struct fetch *f);
	void *ctx;
};

static inline void peer_count(uint64_t *counter, uint64_t n)
{
	__atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
}

/* Count the end of a connection. `stranger`: an accepted one that never was
 * welcome. */
static inline void peer_count_end(struct peer_counts *c, int why, bool stranger)
{
	if (why == -ECANCELED)
		return;
	if (stranger || why == -EBADMSG || why == -EMSGSIZE || why == -EPROTO ||
	    why == -EPROTONOSUPPORT)
		peer_count(&c->refused, 1);
	if (why == -ETIMEDOUT)
		peer_count(&c->timeouts, 1);
}

#endif
