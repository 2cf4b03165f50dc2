/* SPDX-License-Identifier: MIT */
/*
 * The flow of samples through a bounded set of windows.
 *
 * A window is the unit of reading: `superbatch` consecutive batches of an
 * epoch's order. Windows are leased in order, one after the other. Their
 * batches leave in order or, with `any_order`, on completion (as in PyTorch's
 * DataLoader with in_order=False): then no batch waits for a slow sample of the
 * one before, and the delay of a slow batch is unbounded.
 *
 * Each window has its own memory, and there are `n_windows` of them. When all
 * are in use, workers block until all batches of one are released
 * (back-pressure). Unused windows are on a stack, and a processor prefers those
 * that it has filled before, so that those in use stay in its caches.
 *
 *	free --lease--> being read --arrive, finish--> complete --next-->
 *	with the consumer --release--> free
 *
 * All waiting is on condition variables under one lock. It is taken once per
 * lease and per batch, not per sample.
 */
#ifndef GPEMU_LOADER_PIPELINE_FLOW_H
#define GPEMU_LOADER_PIPELINE_FLOW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/tick.h"
#include "common/timerq.h"
#include "emu/gpu/pinned.h"
#include "loader/pipeline/buffer.h"
#include "loader/dataset/dataset.h"
#include "loader/engine/place.h"

struct batch {
	struct window *window;
	struct place *place; /* n */
	uint32_t n;
	atomic_uint pending; /* slots not filled yet */
	/* emulated transforms: when the virtual cores complete the batch;
	 * guarded by their lock, then owned by the thread that completes it */
	uint64_t due_ns;
	struct timer timer;
	bool complete;	    /* flow's lock */
	struct batch *next; /* flow's lock: the next completed batch */
	uint64_t complete_ns;
	/* total time of the workers that made it, in emulated ns, at
	 * completion: see worker.h */
	unsigned owner;
	uint64_t read_ns, prep_ns;
	/* as struct delivery; only of batches of a staging area */
	double read_share;
};

struct window {
	uint64_t index; /* over all epochs */
	uint64_t epoch;
	const uint32_t *order; /* from its first sample on */
	uint32_t n;	       /* samples */
	uint32_t n_batches;
	uint32_t taken;	     /* lock: samples leased */
	uint32_t released;   /* lock: batches released */
	int cpu;	     /* lock: who leased it first; -1: nobody yet */
	atomic_uint arrived; /* samples read, where slots fill on completion */
	struct batch *batch; /* superbatch */
	struct place *place; /* superbatch * batch */
	uint32_t *turn;	     /* the order in which positions are read */
	size_t *raw_at;	     /* offset of each position in `raw` */
	/* the batches' data, one of the two; valid while the window is open */
	char *raw; /* file contents, at raw_at */
	char *out; /* transformed samples, `stride` apart */
	/* the memory behind it: one of these */
	struct buffer memory;
	struct pinned_buffer *pinned;
};

struct flow_config {
	const struct dataset *data;
	struct tick *tick;
	uint32_t batch, superbatch, n_windows;
	bool raw;	 /* windows have memory for the raw bytes */
	size_t stride;	 /* bytes of a transformed sample; 0: none */
	uint32_t direct; /* of raw bytes: size as buffer_room, and alignment */
	bool any_order;	 /* batches leave on completion */
	/* windows of one sample, which are many: none keeps the memory of the
	 * largest */
	bool lean;
	/* Device addresses of the samples (any unit, by sample). The samples of
	 * a window, or of a batch where whole batches are leased, are read in
	 * the order of their addresses. NULL: in the epoch's order. */
	const uint64_t *address;
	bool whole_batches;
	/* Windows take their memory from this pool, and wait for it. NULL:
	 * plain memory. */
	struct pinned_pool *pinned;
};

struct flow;

int flow_new(const struct flow_config *c, struct flow **ret, struct err *err);
void flow_free(struct flow *f);

/*
 * Lease the samples order[0..n) after those of earlier calls, from a window of
 * their own on. At most n_windows calls may wait for that. `order` stays in use
 * until its batches are released.
 */
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
/* `n` slots of the batch are filled. True: the last ones, and the caller must
 * call flow_complete. */
bool flow_finish_some(struct batch *b, uint32_t n);
static inline bool flow_finish(struct batch *b)
{
	return flow_finish_some(b, 1);
}
/* Release the batch to flow_next, after its complete_ns and the fields after it
 * are set. */
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
