/* SPDX-License-Identifier: MIT */
/*
 * From an order of samples to batches that a GPU can take:
 *
 *	order --flow--> workers (engine, prep) --flow--> pin --> consumer
 *
 * Everything is bounded: `prefetch` batches per worker (and at least two
 * windows) are on their way, three more for each GPU in pinned memory, unless
 * the windows are in pinned memory themselves. One thread, the consumer, calls
 * everything here but pipeline_interrupt.
 *
 * With an engine that makes batches out of nothing there are no threads and
 * no pin stage: a batch is ready when it is asked for.
 */
#ifndef GPEMU_LOADER_PIPELINE_PIPELINE_H
#define GPEMU_LOADER_PIPELINE_PIPELINE_H

#include "common/hist.h"
#include "common/tick.h"
#include "emu/profile/profile_gpu.h"
#include "loader/pipeline/delivery.h"
#include "loader/engine/engine.h"
#include "loader/prep/prep.h"
#include "loader/pipeline/worker.h"

struct pipeline_config {
	const struct dataset *data; /* not needed without workers */
	uint64_t sample_bytes;	    /* of a batch's without workers */
	const struct engine_ops *engine;
	const void *engine_options; /* as struct engine_config */
	const struct prep_ops *prep;
	const struct gpu_profile *pin; /* its host's; NULL: no pin stage */
	/* no pin stage, and samples are read or prepared into page-locked
	 * memory: what the windows hold */
	bool pin_direct;
	bool pin_inline; /* the consumer is the pin stage; not with `gpus` */
	uint64_t pin_budget; /* bytes of pinned memory at most */
	struct tick *tick;
	struct trace *trace; /* NULL: no timeline is wanted */
	uint64_t seed;
	uint32_t workers;     /* >= 1 */
	uint32_t queue_depth; /* reads on their way, over all workers */
	uint32_t batch, superbatch;
	uint32_t prefetch; /* batches per worker or virtual core */
	uint32_t gpus;	   /* that take batches side by side; 0: one */
	const struct prep_config *prep_config; /* in use until it is freed */
	uint32_t cores;	 /* virtual ones; where workers own batches, workers */
	uint32_t direct; /* as struct engine_config */
	const uint64_t *address; /* as struct flow_config */
};

struct pipeline;

/* What the prep stage of `c` writes per sample; 0: raw bytes. It asks for no
 * more of `c` than `prep` and `prep_config`. -ENOMEM. */
int pipeline_sample_bytes(const struct pipeline_config *c, size_t *ret,
			  struct err *err);
/* -EPERM, -ENOMEM with a text: something is not available now. */
int pipeline_new(const struct pipeline_config *c, struct pipeline **ret,
		 struct err *err);
/* Stops and joins what still runs. NULL is allowed. */
void pipeline_free(struct pipeline *p);

/*
 * Read order[0..n) in batches, the last one smaller when n asks for it. The
 * epoch before must have been consumed. `order` is used until this one is.
 */
void pipeline_begin(struct pipeline *p, uint64_t epoch, const uint32_t *order,
		    uint64_t n);

/*
 * The next batch. The GPU has nothing to do from `idle` (emulated ns) on: how
 * the workers' time was spent from then until the batch was complete becomes
 * read_share. One that is complete before anybody looked: since the batch
 * before it. -ENODATA: the epoch has no more. -ECANCELED: interrupted.
 * Other: a worker or the pin stage failed.
 */
int pipeline_next(struct pipeline *p, uint64_t idle, struct delivery *ret,
		  struct err *err);
/* Would pipeline_next return at once, without waiting for a worker? */
bool pipeline_ready(struct pipeline *p);
/* Samples of the epoch that pipeline_next has not given out. */
uint64_t pipeline_left(const struct pipeline *p);
/* In the order of pipeline_next. */
void pipeline_release(struct pipeline *p, struct delivery *d);

/* From any thread: pipeline_next returns -ECANCELED, now and later. */
void pipeline_interrupt(struct pipeline *p);
/* After that: wait until all threads have ended. */
void pipeline_join(struct pipeline *p);

/* What the workers did in the epoch, which must have been consumed or, after
 * an interrupt, joined; added up in *ret. */
void pipeline_work(struct pipeline *p, struct work *ret);
/* Bytes of pinned memory, at most at a time. */
uint64_t pipeline_pinned(struct pipeline *p);
struct worker_failures pipeline_failures(struct pipeline *p);

#endif
