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
 * With a batching that makes batches of ready samples windows have one sample
 * each, and batches are those of singles.h.
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

#include "loader/core/singles.h"

struct windows_config {
	uint32_t batch, superbatch, n;
	bool any_order; /* batches leave on completion */
	/* with a batching: batch 1, superbatch 1, any_order */
	struct singles_config singles;
};

/* Samples to lease: what is left of one windows_begin. */
struct windows_piece {
	uint64_t epoch;
	const uint32_t *order;
	uint64_t first; /* of order[0] in the piece */
	uint64_t n;
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
	struct singles singles;
	struct windows_piece *piece; /* as many as windows, a ring */
	uint32_t first_piece, n_pieces;
};

/* -ENOMEM. windows_fini, failed or not; what a driver adds to a window is the
 * driver's to free. */
int windows_init(struct windows *ws, const struct windows_config *c);
void windows_fini(struct windows *ws);

/* Lease the samples order[0..n) after those of earlier calls, from a window of
 * their own on. At most as many calls as windows may wait for that; with a
 * batching, those of the call before were taken. */
void windows_begin(struct windows *ws, uint64_t epoch, const uint32_t *order,
		   uint64_t n);
/* Samples of the next window; 0: no window is free, or there are no samples. */
uint32_t windows_room(struct windows *ws);
/* The order of these. */
const uint32_t *windows_order(const struct windows *ws);
/* free[at] is the next window, and there is room. The one before is leased. */
void windows_open(struct windows *ws, uint32_t at);
/*
 * Up to `want` samples of the current window, never of two batches: positions
 * *ret_at .. *ret_end. False: all of it are leased, or there is none.
 */
bool windows_lease(struct windows *ws, uint32_t want, struct window **ret,
		   uint32_t *ret_at, uint32_t *ret_end);
/* `n` slots of the batch are filled, by any thread. True: the last ones, and
 * the caller must see to it that windows_complete is called. */
bool windows_fill(struct batch *b, uint32_t n);
/* All of the batch are there. True: windows_next now returns one. */
bool windows_complete(struct windows *ws, struct batch *b);
/* Completed batches that windows_next has not taken. */
uint32_t windows_n_complete(const struct windows *ws);
/* Take the next completed batch; NULL: there is none now. */
struct batch *windows_next(struct windows *ws);
/* The consumer has done with it; in any order. True: a window is free. */
bool windows_release(struct windows *ws, struct batch *b);

#endif
