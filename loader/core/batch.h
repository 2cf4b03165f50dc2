/* SPDX-License-Identifier: MIT */
/* Batches, their windows (windows.h), and where the time of the workers that
 * made them went. */
#ifndef GPEMU_LOADER_CORE_BATCH_H
#define GPEMU_LOADER_CORE_BATCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/timerq.h"

/* Emulated ns spent by one worker or several. With virtual cores, read_ns
 * includes the time of transforms during reads. */
struct activity {
	uint64_t read_ns, prep_ns;
};

/*
 * The share of reads in the time from `since` to `now`; the rest is transforms.
 * 1 if there were none, or no time passed. `virtual_cores`: read_ns includes
 * transforms.
 */
double activity_read_share(const struct activity *since,
			   const struct activity *now, bool virtual_cores);

struct place;

struct batch {
	struct window *window;
	uint32_t n;
	atomic_uint pending; /* slots not filled yet */
	/* emulated transforms: when the virtual cores complete the batch */
	uint64_t due_ns;
	bool complete;
	struct batch *next; /* the next completed batch */
	uint64_t complete_ns;
	/* total time of the workers that made it, at completion: of `owner`
	 * where workers own batches, else of all */
	unsigned owner;
	struct activity spent;
	/* of samples that a batching has gathered (singles.h), and has no
	 * window: each as a batch, n; else NULL */
	void **single;
	/* of the driver */
	struct place *place; /* threads: n */
	struct timer timer;  /* threads: of due_ns */
	double read_share;   /* as struct delivery; only of a staging area */
	uint64_t bytes;	     /* event clock: of its samples' files */
};

struct window {
	uint64_t index; /* over all epochs */
	uint64_t first; /* its first sample in the epoch, or in its piece */
	uint32_t n;	/* samples */
	uint32_t n_batches;
	uint32_t taken;	     /* samples leased */
	uint32_t released;   /* batches released */
	atomic_uint arrived; /* samples read, where slots fill on completion */
	struct batch *batch; /* superbatch */
	/* of the driver with threads */
	uint64_t epoch;
	const uint32_t *order; /* from its first sample on */
	int cpu;	       /* who leased it first; -1: nobody yet */
	struct place *place;   /* superbatch * batch */
	uint32_t *turn;	       /* the order in which positions are read */
	size_t *raw_at;	       /* offset of each position in `raw` */
	/* the batches' data, one of the two; valid while the window is open */
	char *raw; /* file contents, at raw_at */
	char *out; /* transformed samples, `stride` apart */
};

/* Of worker `i` until `now`. */
typedef struct activity (*activity_fn)(void *ctx, uint32_t i, uint64_t now);

/* The batch is complete at `now`: sets its clocks. `owned`: workers own
 * batches; `workers`: their number. */
void batch_stamp(struct batch *b, bool owned, uint32_t workers,
		 activity_fn activity, void *ctx, uint64_t now);

#endif
