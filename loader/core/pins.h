/* SPDX-License-Identifier: MIT */
/*
 * The pin stage: when batches are copied into page-locked memory, and when the
 * consumer has them. Batches take turns on `lanes`, one for each GPU that has a
 * pin stage of its own; the lanes' profiled times overlap.
 *
 * Pure, as windows.h. pin.h of loader/pipeline drives it with threads,
 * sim_step.c of loader/sim on the event clock.
 */
#ifndef GPEMU_LOADER_CORE_PINS_H
#define GPEMU_LOADER_CORE_PINS_H

#include <stdint.h>

#include "common/util.h"
#include "emu/gpu/gpus.h"

/* Buffers of a lane: one is copied to the device, one is ready, one is being
 * filled. While the pin stage keeps up with the device, more would only wait.
 */
enum { PINS_LANE_BUFFERS = 3 };

struct pins {
	uint32_t lanes;		    /* 1..GPUS_MAX */
	uint64_t free_ns[GPUS_MAX]; /* each lane, from then on */
	uint64_t n_in, n_out;	    /* batches copied, taken */
};

static inline uint32_t pins_buffers(const struct pins *p)
{
	return p->lanes * PINS_LANE_BUFFERS;
}

/* The lane of the next batch, whose copy begins when that is free. */
static inline uint64_t *pins_lane(struct pins *p)
{
	return &p->free_ns[p->n_in % p->lanes];
}

/* The next batch is copied from `start` on, for `cost_ns` at least, and is in
 * place at `end`. Returns when it is ready; *ret_seen: when the consumer may
 * take it: with several lanes the consumer waits for that itself. Afterwards
 * the caller adds one to n_in. */
static inline uint64_t pins_copy(struct pins *p, uint64_t start,
				 uint64_t cost_ns, uint64_t end,
				 uint64_t *ret_seen)
{
	uint64_t ready = MAX(end, start + cost_ns);

	*ret_seen = p->lanes == 1 ? ready : end;
	return *pins_lane(p) = ready;
}

#endif
