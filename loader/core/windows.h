/* SPDX-License-Identifier: MIT */
/*
 * The samples in flight: who reads which, which batch they fill, in which order
 * batches leave.
 *
 * A window is the unit of reading: `superbatch` consecutive batches of an
 * epoch's order. Windows are leased in order, one after the other. Their
 * batches leave in order or, with `any_order`, on completion (as in PyTorch's
 * DataLoader with in_order=False): then no batch waits for a slow sample of the
 * one before, and the delay of a slow batch is unbounded.
 *
 * There are `n` windows. When all are in use, nothing is leased until all
 * batches of one are released (back-pressure).
 *
 *	free --open, lease--> being read --fill, complete--> complete --next-->
 *	with the consumer --release--> free
 *
 * Pure: no lock (the caller's), no clock, no bytes. flow.h of loader/pipeline
 * drives it with threads, sim_load.h of loader/sim on the event clock.
 */
#ifndef GPEMU_LOADER_CORE_WINDOWS_H
#define GPEMU_LOADER_CORE_WINDOWS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/timerq.h"
#include "common/util.h"

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
	/* total time of the workers that made it, in emulated ns, at
	 * completion: see loader/pipeline/worker.h */
	unsigned owner;
	uint64_t read_ns, prep_ns;
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

struct windows_config {
	uint32_t batch, superbatch, n;
	bool any_order; /* batches leave on completion */
};

struct windows {
	struct windows_config c;
	struct window *all;   /* n */
	struct window **free; /* a stack, most recently used on top */
	uint32_t n_free;
	struct window **open;	/* n, by index modulo n */
	uint64_t n_opened;	/* the next window's index */
	struct window *current; /* samples are leased from it */
	uint64_t out_window;	/* index of the oldest window not delivered */
	uint32_t out_batch;
	struct batch *first, *last; /* completed batches, with any_order */
	uint32_t n_complete;	    /* completed batches not delivered yet */
};

/* -ENOMEM. windows_fini, failed or not; what a driver adds to a window is the
 * driver's to free. */
int windows_init(struct windows *ws, const struct windows_config *c);
void windows_fini(struct windows *ws);

/* Samples of the next window, where `left` are left to read. */
static inline uint32_t windows_room(const struct windows *ws, uint64_t left)
{
	return (uint32_t)MIN((uint64_t)ws->c.batch * ws->c.superbatch, left);
}
/* free[at] is the next window, of `n` samples. The one before is leased. */
void windows_open(struct windows *ws, uint32_t at, uint32_t n);
/*
 * Up to `want` samples of the current window, never of two batches: positions
 * *ret_at .. *ret_end. False: all of it are leased, or there is none.
 */
bool windows_lease(struct windows *ws, uint32_t want, struct window **ret,
		   uint32_t *ret_at, uint32_t *ret_end);
/* `n` slots of the batch are filled, by any thread. True: the last ones, and
 * the caller must see to it that windows_complete is called. */
bool windows_fill(struct batch *b, uint32_t n);
/* All of the batch are there. True: windows_next returns it next. */
bool windows_complete(struct windows *ws, struct batch *b);
/* Take the next completed batch; NULL: there is none now. */
struct batch *windows_next(struct windows *ws);
/* The consumer has done with it; in any order. True: its window is free. */
bool windows_release(struct windows *ws, struct batch *b);

#endif
