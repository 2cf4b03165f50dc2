/* SPDX-License-Identifier: MIT */
/*
 * A worker: one thread with its own engine and its own prep stage. It leases
 * samples from the flow, reads them, prepares them, puts them into batches.
 *
 * Where its time goes is counted as it goes: waiting for or doing reads,
 * preparing, or idle because every window is in use. The account of a data
 * wait (account.h) is made from these clocks.
 *
 * Emulated preparation: where workers own batches a worker is a virtual core,
 * and sleeps while it "prepares"; elsewhere the samples go to the virtual
 * cores of vcores.h, the worker reads on, and the clocks are those of the
 * cores: one that is not busy while reads are waited for is reading.
 */
#ifndef GPEMU_LOADER_PIPELINE_WORKER_H
#define GPEMU_LOADER_PIPELINE_WORKER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "common/hist.h"
#include "common/tick.h"
#include "loader/engine/engine.h"
#include "loader/pipeline/flow.h"
#include "loader/prep/prep.h"
#include "loader/pipeline/trace.h"

struct worker_config {
	const struct engine_ops *engine;
	const void *engine_options;
	const struct prep_ops *prep;
	const struct dataset *data;
	struct tick *tick;
	struct flow *flow;
	uint64_t seed;
	uint32_t depth;	     /* reads on their way, per worker */
	uint32_t lease;	     /* samples taken from the flow at once */
	struct trace *trace; /* may be NULL */
	size_t stride;	     /* as struct flow_config */
	uint32_t direct;     /* as struct engine_config */
	size_t sample_bytes; /* prepared; 0: raw bytes */
	const struct prep_config *prep_config;
	uint32_t cores; /* virtual ones, where prep is emulated */
};

/* Emulated ns that a worker, or several, have spent. Of virtual cores read_ns
 * holds the time prepared while reads were waited for, too. */
struct activity {
	uint64_t read_ns, prep_ns;
};

struct workers;

/* Start `n` threads; returns when all are set up, or with the first error. */
int workers_new(const struct worker_config *c, uint32_t n, struct workers **ret,
		struct err *err);
/* Do virtual cores prepare, whoever reads? */
bool workers_virtual(const struct worker_config *c);
/* Wait for the threads to end; the flow must have been stopped. */
void workers_join(struct workers *w);
/* Joins the threads. NULL is allowed. */
void workers_free(struct workers *w);

/* What worker `i` has spent until now, or its share of what the virtual cores
 * have; any thread. */
struct activity workers_activity(struct workers *w, uint32_t i);

/* Samples that could not be used: how many since the start, and the first. */
struct worker_failures {
	uint64_t n;
	uint32_t sample; /* of the first */
	int error;	 /* -errno of the first */
};
struct worker_failures workers_failures(struct workers *w);

/* What the workers did since the last call. */
struct work {
	struct hist read, prep; /* of each sample, emulated ns */
	uint64_t bytes_read;
};
/* Add it up in *ret. No sample may be on its way. */
void workers_work(struct workers *w, struct work *ret);

#endif
