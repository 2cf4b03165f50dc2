/* SPDX-License-Identifier: MIT */
/*
 * The flow of samples through a bounded set of windows.
 *
 * A window is what is read at once: `superbatch` consecutive batches of an
 * epoch's order. Windows are handed out in order, one after the other; their
 * batches leave in order, or, with `any_order`, as they become complete (what
 * PyTorch's DataLoader does with in_order=False): then none waits for a slow
 * sample of the one before, and how late a slow one leaves is not bounded.
 *
 * Each window has its own memory, and there are `n_windows` of them: when all
 * are in use, workers wait until all batches of one are released. Unused
 * windows are kept on a stack, so that those in use stay in the CPU's caches.
 *
 *	free --lease--> being read --arrive, finish--> complete --next-->
 *	with the consumer --release--> free
 *
 * All waiting is on condition variables under one lock, which is taken per
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

/* One sample's place in a batch. */
struct place {
	const void *data;
	size_t n;	 /* bytes at `data` */
	uint32_t sample; /* in the dataset */
	int error;	 /* 0; -errno: could not be used, `data` is zeros */
};

struct batch {
	struct window *window;
	struct place *place; /* n */
	uint32_t n;
	atomic_uint pending; /* places not finished */
	/* emulated preparation: when the virtual cores are done with it; their
	 * lock, and that of who finished it */
	uint64_t due_ns;
	struct timer timer;
	bool complete;	    /* flow's lock */
	struct batch *next; /* flow's lock: complete after this one */
	uint64_t complete_ns;
	/* what the workers that made it had spent, in emulated ns, when it
	 * was complete: see worker.h */
	unsigned owner;
	uint64_t read_ns, prep_ns;
};

struct window {
	uint64_t index; /* counted over all epochs */
	uint64_t epoch;
	const uint32_t *order; /* of its first sample */
	uint32_t n;	       /* samples */
	uint32_t n_batches;
	uint32_t taken;	     /* lock: samples handed out */
	uint32_t released;   /* lock: batches released */
	atomic_uint arrived; /* samples read, where they fill as they come */
	struct batch *batch; /* superbatch */
	struct place *place; /* superbatch * batch */
	uint32_t *turn;	     /* the positions in the order of reading */
	size_t *raw_at;	     /* where a position's bytes go in `raw` */
	/* what the batches hold, one of them; valid while the window is open */
	char *raw; /* the files' bytes, at raw_at */
	char *out; /* the prepared samples, `stride` apart */
	/* where that is: one of these */
	struct buffer memory;
	struct pinned_buffer *pinned;
};

struct flow_config {
	const struct dataset *data;
	struct tick *tick;
	uint32_t batch, superbatch, n_windows;
	bool raw;	 /* windows have memory for the raw bytes */
	size_t stride;	 /* for prepared samples: so many bytes each; or 0 */
	uint32_t direct; /* raw bytes: as buffer_room, and aligned to it */
	bool any_order;	 /* batches leave as they become complete */
	/* Where samples lie on the device (any unit, by sample): those of a
	 * window, or of a batch where whole batches are leased, are read in
	 * the order of their addresses. NULL: in the epoch's order. */
	const uint64_t *address;
	bool whole_batches;
	/* Windows have their memory from here, and wait for it. NULL: plain
	 * memory. */
	struct pinned_pool *pinned;
};

struct flow;

int flow_new(const struct flow_config *c, struct flow **ret, struct err *err);
void flow_free(struct flow *f);

/*
 * Hand out the samples order[0..n) from now on; the epoch before must have
 * been handed out whole. `order` stays in use until its batches are released.
 */
void flow_begin(struct flow *f, uint64_t epoch, const uint32_t *order,
		uint64_t n);

/*
 * Up to `want` samples of a window that are read one after the other, never of
 * two batches: positions turn[*ret_pos .. *ret_end). Without `wait`, -EAGAIN
 * when there are none now. -ECANCELED: stopping.
 */
int flow_lease(struct flow *f, uint32_t want, bool wait, struct window **ret,
	       uint32_t *ret_pos, uint32_t *ret_end);

/* The batch to which a slot of the window belongs. */
struct batch *flow_batch(const struct flow *f, struct window *w, uint32_t slot);
/* The slot's place is filled. True: that was the last one of its batch, and
 * the caller must call flow_complete. */
bool flow_finish(struct batch *b);
/* Let the batch go, once its complete_ns and what is below it are set. */
void flow_complete(struct flow *f, struct batch *b);

/*
 * The next batch, complete. One thread at a time. Waits until
 * `deadline` (emulated; TICK_NEVER: for good), then -ETIMEDOUT. -ECANCELED:
 * stopping.
 */
int flow_next(struct flow *f, uint64_t deadline, struct batch **ret);
/* Batches that are complete and not taken by flow_next. */
uint32_t flow_n_complete(struct flow *f);
/* In the order of flow_next. */
void flow_release(struct flow *f, struct batch *b);

/* Sleep until `deadline` (emulated; never less, a little more). -ECANCELED:
 * stopping. */
int flow_pause(struct flow *f, uint64_t deadline);

/*
 * Everyone who waits gets -ECANCELED, now and later. `r` < 0: why, kept for
 * flow_error when it is the first.
 */
void flow_stop(struct flow *f, int r, const struct err *err);
/* 0, or the error that flow_stop was given. */
int flow_error(struct flow *f, struct err *err);

#endif
