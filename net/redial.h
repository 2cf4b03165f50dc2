/* SPDX-License-Identifier: MIT */
/*
 * When to dial an address again: after a pause that doubles with each loss,
 * until a connection is of use.
 */
#ifndef GPEMU_NET_REDIAL_H
#define GPEMU_NET_REDIAL_H

#include "common/tick.h"
#include "common/util.h"

struct redial {
	const struct tick *tick;
	uint64_t least_ns, most_ns; /* wall: pauses */
	uint64_t at;		    /* emulated: not before */
	uint64_t pause_ns;	    /* emulated: after the next loss */
};

/* The connection is of use, or the address new: the next pause is short. */
static inline void redial_reset(struct redial *r)
{
	r->pause_ns = tick_emulated(r->tick, r->least_ns);
}

static inline void redial_init(struct redial *r, const struct tick *tick,
			       uint64_t least_ns, uint64_t most_ns)
{
	*r = (struct redial){ tick, least_ns, most_ns };
	redial_reset(r);
}

/* Is the next pause the longest? */
static inline bool redial_is_slow(const struct redial *r)
{
	return r->pause_ns == tick_emulated(r->tick, r->most_ns);
}

/* The connection was lost, or there was none. */
static inline void redial_later(struct redial *r)
{
	r->at = tick_now(r->tick) + r->pause_ns;
	r->pause_ns = MIN(2 * r->pause_ns, tick_emulated(r->tick, r->most_ns));
}

#endif
