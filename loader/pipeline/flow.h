/* SPDX-License-Identifier: MIT */
/*
 * The flow of samples through windows (loader/core/windows.h), for threads.
 *
 * Each window has its own memory. When all are in use, workers block. Of the
 * unused ones a processor prefers those that it has filled before, so that
 * those in use stay in its caches.
 *
 * All waiting is on condition variables under one lock. It is taken once per
 * lease and per batch, not per sample.
 */
#ifndef GPEMU_LOADER_PIPELINE_FLOW_H
#define GPEMU_LOADER_PIPELINE_FLOW_H

#include "common/err.h"
#include "common/tick.h"
#include "emu/gpu/pinned.h"
#include "loader/core/windows.h"
#include "loader/dataset/dataset.h"
#include "loader/engine/place.h"
#include "loader/pipeline/buffer.h"
#include "loader/pipeline/supply.h"

struct flow_config {
	const struct dataset *data;
	struct tick *tick;
	struct windows_config windows;
	bool raw;	 /* windows have memory for the raw bytes */
	size_t stride;	 /* bytes of a transformed sample; 0: none */
	uint32_t direct; /* of raw bytes: size as buffer_room, and alignment */
	/* Device addresses of the samples (any unit, by sample). The samples of
	 * a window, or of a batch where whole batches are leased, are read in
	 * the order of their addresses. NULL: in the epoch's order. */
	const uint64_t *address;
	bool whole_batches;
	/* Windows take their memory from this pool, and wait for it; without
	 * a batching. NULL: plain memory. */
	struct pinned_pool *pinned;
};

struct flow;

int flow_new(const struct flow_config *c, struct flow **ret, struct err *err);
void flow_free(struct flow *f);

/* As windows_begin. `order` stays in use until its batches are released. */
void flow_begin(struct flow *f, uint64_t epoch, const uint32_t *order,
		uint64_t n);

/*
 * Lease up to `want` samples of a window that are read one after the other,
 * never of two batches: positions turn[*ret_pos .. *ret_end). Without `wait`,
 * -EAGAIN if there are none now. -ECANCELED: stopping.
 */
int flow_lease(struct flow *f, uint32_t want, bool wait, struct window **ret,
	       uint32_t *ret_pos, uint32_t *ret_end);

/* The batch that a slot of the window belongs to. */
struct batch *flow_batch(const struct flow *f, struct window *w, uint32_t slot);
/* Release the batch to flow_next, after windows_fill, and after its clocks are
 * set. */
void flow_complete(struct flow *f, struct batch *b);

/*
 * The next completed batch. One thread at a time. Waits until `deadline`
 * (emulated; TICK_NEVER: for good), then -ETIMEDOUT. -ECANCELED: stopping.
 */
int flow_next(struct flow *f, uint64_t deadline, struct batch **ret);
/* Completed batches that flow_next has not taken. */
uint32_t flow_n_complete(struct flow *f);
/* In any order. */
void flow_release(struct flow *f, struct batch *b);
extern const struct supply_ops supply_flow;

/* Sleep until `deadline` (emulated; never shorter, slightly longer).
 * -ECANCELED: stopping. */
int flow_pause(struct flow *f, uint64_t deadline);

/*
 * All waiting threads get -ECANCELED, now and later. `r` < 0: the cause;
 * flow_error keeps the first.
 */
void flow_stop(struct flow *f, int r, const struct err *err);
/* 0, or the error passed to flow_stop. */
int flow_error(struct flow *f, struct err *err);

#endif
