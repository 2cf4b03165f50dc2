/* SPDX-License-Identifier: MIT */
/*
 * A worker: one thread with its own engine and its own transforms. It leases
 * samples from the flow, reads them, transforms them, and collates them into
 * batches.
 *
 * Clocks count where its time goes: waiting for or doing reads, transforms, or
 * idle because every window is in use. The account of a data wait (account.h)
 * is made from these clocks.
 *
 * Emulated transforms: where workers own batches a worker is a virtual core,
 * and sleeps for the time of a transform. Elsewhere the samples go to the
 * virtual cores of vcores.h and the worker reads on. The clocks are then those
 * of the cores: a core that is idle while reads are awaited counts as reading.
 */
#ifndef GPEMU_LOADER_PIPELINE_WORKER_H
#define GPEMU_LOADER_PIPELINE_WORKER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"
#include "common/hist.h"
#include "common/tick.h"
#include "loader/engine/engine.h"
#include "loader/pipeline/flow.h"
#include "loader/prep/prep.h"
#include "loader/pipeline/trace.h"
#include "loader/pipeline/worker_clock.h"

struct worker_config {
	const struct engine_ops *engine;
	const void *engine_options;
	const struct prep_ops *prep;
	const struct dataset *data;
	struct tick *tick;
	struct flow *flow;
	uint64_t seed;
	uint32_t depth;	     /* reads in flight, per worker */
	uint32_t lease;	     /* samples per lease */
	struct trace *trace; /* may be NULL */
	size_t stride;	     /* as struct flow_config */
	uint32_t direct;     /* as struct engine_config */
	/* the file system that samples should be on: those read from another
	 * one are counted; NULL: any */
	const dev_t *mount_dev;
	size_t sample_bytes; /* size of a transformed sample; 0: raw bytes */
	const struct prep_config *prep_config;
	uint32_t cores; /* virtual cores, for emulated transforms */
};

struct workers;

/* Start `n` threads; returns after all are set up, or with the first error. */
int workers_new(const struct worker_config *c, uint32_t n, struct workers **ret,
		struct err *err);
/* Do virtual cores separate from the workers run the transforms? */
bool workers_virtual(const struct worker_config *c);
/* From any thread: from now on there are `n` virtual cores, as vcores_resize.
 * -ENOTSUP: there are none apart from the workers; -ENOMEM. */
int workers_set_cores(struct workers *w, uint32_t n);
/* Wait for the threads to end; the flow must have been stopped. */
void workers_join(struct workers *w);
/* Joins the threads. NULL is allowed. */
void workers_free(struct workers *w);

/* Time spent by worker `i` so far, or its share of the virtual cores' time; any
 * thread. */
struct activity workers_activity(struct workers *w, uint32_t i);

/* Work of the workers since the last call. */
struct work {
	struct hist read, prep; /* per sample, emulated ns */
	uint64_t bytes_read;
	uint64_t bypassed_samples; /* not read from `mount_dev` */
};
/* Add it to *ret. No sample may be in flight. */
void workers_work(struct workers *w, struct work *ret);

#endif
