/* SPDX-License-Identifier: MIT */
/*
 * From an order of samples to batches that a GPU can take:
 *
 *	order --flow--> workers (engine, prep) --flow--> pin --> consumer
 *
 * A batching that makes batches of ready samples stands in the second flow
 * (loader/core/singles.h).
 *
 * Everything is bounded: `prefetch` batches per worker (and at least two
 * windows) are in flight, and three more for each GPU in pinned memory, unless
 * the windows themselves are in pinned memory. One thread, the consumer, calls
 * everything here but pipeline_interrupt, pipeline_set_cores and loan_end.
 *
 * With an engine that makes batches out of nothing there are no threads and no
 * pin stage: a batch is ready on request. Batches that other processes make are
 * taken by intake.h, beside those of a pipeline.
 */
#ifndef GPEMU_LOADER_PIPELINE_PIPELINE_H
#define GPEMU_LOADER_PIPELINE_PIPELINE_H

#include <sys/types.h>

#include "common/hist.h"
#include "common/tick.h"
#include "emu/profile/profile_gpu.h"
#include "loader/batching/batching.h"
#include "loader/pipeline/delivery.h"
#include "loader/engine/engine.h"
#include "loader/prep/prep.h"
#include "loader/pipeline/worker.h"

struct pipeline_config {
	const struct dataset *data; /* unused without workers */
	uint64_t sample_bytes;	    /* of a sample, without workers */
	const struct engine_ops *engine;
	const void *engine_options; /* as struct engine_config */
	const struct prep_ops *prep;
	const struct batching_ops *batching; /* NULL: in order */
	const void *batching_options;	     /* as struct batching_config */
	const struct gpu_profile *pin; /* host profile; NULL: no pin stage */
	/* no pin stage: samples are read or transformed into page-locked
	 * memory, the windows' own; not with a batching of ready samples */
	bool pin_direct;
	bool pin_inline;     /* the consumer pins; not with `gpus` */
	uint64_t pin_budget; /* upper limit of pinned memory */
	struct tick *tick;
	struct trace *trace; /* NULL: no timeline */
	uint64_t seed;
	uint32_t workers;     /* >= 1 */
	uint32_t queue_depth; /* reads in flight, over all workers */
	uint32_t batch, superbatch;
	uint32_t prefetch; /* batches per worker or virtual core */
	uint32_t gpus;	   /* that take batches in parallel; 0: one */
	const struct prep_config *prep_config; /* in use until pipeline_free */
	uint32_t cores;	 /* virtual cores; where workers own batches, workers */
	uint32_t direct; /* as struct engine_config */
	const dev_t *mount_dev;	 /* as struct worker_config */
	const uint64_t *address; /* as struct flow_config */
	/* Batches are shared with other jobs, and each epoch has `per_epoch` of
	 * them; with superbatch 1, in order, not with pin_direct. NULL: no
	 * other jobs. */
	struct staging *staging;
	uint64_t per_epoch;
};

struct pipeline;

/* Does the batching make batches of single samples that are ready
 * (loader/core/singles.h)? */
bool pipeline_gathers(const struct pipeline_config *c);
/* Do batches leave on completion? */
bool pipeline_any_order(const struct pipeline_config *c);
/* The number of windows of whole batches: enough for the batches to prefetch.
 */
uint32_t pipeline_windows(const struct pipeline_config *c);
/* The windows: those, or as many samples, each in a window of its own, where
 * the batching gathers: a slow one keeps no other's memory. -ENOMEM: they are
 * too many. */
int pipeline_shape(const struct pipeline_config *c, struct windows_config *ret);
/* Samples per lease, where they are collated `stride` bytes apart (0: raw). */
uint32_t pipeline_lease(const struct pipeline_config *c, size_t stride);
/* Bytes that the prep stage of `c` writes per sample; 0: raw bytes. Uses only
 * `prep` and `prep_config` of `c`. -ENOMEM. */
int pipeline_sample_bytes(const struct pipeline_config *c, size_t *ret,
			  struct err *err);
/* -EPERM, -ENOMEM with a text: a resource is not available now. */
int pipeline_new(const struct pipeline_config *c, struct pipeline **ret,
		 struct err *err);
/* Stops and joins all threads; memory on loan lives on. NULL is allowed. */
void pipeline_free(struct pipeline *p);

/* From any thread: as workers_set_cores. As many batches are prefetched as for
 * the cores at the start. */
int pipeline_set_cores(struct pipeline *p, uint32_t n);

/*
 * Read order[0..n) in batches; the last one may be smaller. The epoch before
 * must have been consumed. `order` stays in use until this one is consumed.
 */
void pipeline_begin(struct pipeline *p, uint64_t epoch, const uint32_t *order,
		    uint64_t n);

/*
 * Read `n` more samples after those, before or after these are consumed. With
 * superbatch 1, without a pin stage, without a batching. At most
 * pipeline_windows() calls may be waiting for a window.
 */
void pipeline_add(struct pipeline *p, uint64_t epoch, const uint32_t *order,
		  uint64_t n);
/* With superbatch 1: where in `order` the samples of the batch are. */
const uint32_t *pipeline_order(const struct delivery *d);

/*
 * The next batch. The GPU is idle from `idle` (emulated ns) on. read_share
 * covers the workers' time from then until the batch was complete. If it was
 * complete before the clocks were read: since the batch before it. Waits until
 * `until` (emulated ns, TICK_NEVER) at most: 1: no batch yet, call again.
 * -ENODATA: the epoch has no more. -ECANCELED: interrupted. Other: a worker or
 * the pin stage failed.
 */
int pipeline_next_until(struct pipeline *p, uint64_t idle, uint64_t until,
			struct delivery *ret, struct err *err);
static inline int pipeline_next(struct pipeline *p, uint64_t idle,
				struct delivery *ret, struct err *err)
{
	return pipeline_next_until(p, idle, TICK_NEVER, ret, err);
}
/* Does pipeline_next return at once, without waiting for a worker? */
bool pipeline_ready(struct pipeline *p);
/* Samples of the epoch that pipeline_next has not delivered. */
uint64_t pipeline_left(const struct pipeline *p);
/* In the order of pipeline_next; without a pin stage from any one thread. */
void pipeline_release(struct pipeline *p, struct delivery *d);

/*
 * Lend the memory of a batch that is not released yet: the data of its samples
 * stay valid until loan_end, also after pipeline_release and pipeline_free. The
 * pipeline makes the next batches with the rest of its memory; pipeline_next
 * may wait for good if that is not enough. -ENOBUFS: there are no bytes, or
 * they are not only this batch's (a staging area, emulated transforms).
 * -ENOMEM. Once for a batch.
 */
struct loan;
int pipeline_lend(struct pipeline *p, struct delivery *d, struct loan **ret);
/* Loans that have not ended. */
uint32_t pipeline_loans(const struct pipeline *p);
/* From any thread, also before pipeline_release. NULL is allowed. */
void loan_end(struct loan *l);

/* From any thread: pipeline_next returns -ECANCELED, now and later. */
void pipeline_interrupt(struct pipeline *p);
/* After pipeline_interrupt: wait until all threads have ended. */
void pipeline_join(struct pipeline *p);

/* Add the workers' work in the epoch to *ret. The epoch must have been consumed
 * or, after an interrupt, joined. */
void pipeline_work(struct pipeline *p, struct work *ret);
/* Peak bytes of pinned memory. */
uint64_t pipeline_pinned(struct pipeline *p);

#endif
