/* SPDX-License-Identifier: MIT */
/*
 * What a worker reads: samples that are leased from the flow, taken by its
 * engine, and recycled when they are in their batch. engine.h has what an
 * engine calls; the rest is for the worker (worker.c) alone, on its thread.
 */
#ifndef GPEMU_LOADER_PIPELINE_FEED_H
#define GPEMU_LOADER_PIPELINE_FEED_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "loader/engine/engine.h"
#include "loader/pipeline/buffer.h"
#include "loader/pipeline/flow.h"
#include "loader/pipeline/worker.h"
#include "loader/pipeline/worker_clock.h"

/* One worker; also the host that the engine calls. */
struct feed {
	const struct worker_config *c;
	struct workers *all;
	uint32_t index;
	pthread_t thread;
	bool started;
	void *engine, *prep; /* states */

	/* samples leased and not yet taken by the engine */
	struct window *window;
	uint32_t pos, end;

	struct fetch *fetch;   /* depth */
	struct buffer *buffer; /* depth: raw bytes, if there are transforms */
	struct fetch **unused; /* a stack, most recently used on top */
	uint32_t n_unused;
	/* returned by the engine: they were read together, and are of one
	 * lease, so of one batch */
	struct fetch **run; /* depth */
	uint32_t n_run;

	bool in_prep; /* the time of the last group was feed_put's */
	struct work work;
	/* a worker that is a core: how late its last sample's sleep ended */
	uint64_t late_ns;

	struct worker_clock clock;
};

/* Room for the fetches; `c` is set, the rest zero. -ENOMEM. */
int feed_init(struct feed *f);
/* After feed_init, also a failed one. */
void feed_fini(struct feed *f);
/* Where a sample belongs after the transforms. */
static inline char *feed_slot(const struct feed *f, const struct fetch *x)
{
	return x->window->out + f->c->stride * x->pos;
}
/* The sample is in its batch. */
void feed_recycle(struct feed *f, struct fetch *x);

#endif
