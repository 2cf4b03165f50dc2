/* SPDX-License-Identifier: MIT */
/*
 * Plug-in kind `batching`: which samples make a batch, and in which order
 * batches leave.
 *
 * A sample has a position in its epoch's order, from 0. Its own batch is the
 * one that holds it in that order: position / batch. A batching without `add`
 * leaves the batches as the workers fill them. One with `add` is told of each
 * sample as it becomes ready, read and transformed, and makes the batches
 * itself. It is pure bookkeeping: no lock (the caller's), no clock, no I/O.
 */
#ifndef GPEMU_LOADER_BATCHING_BATCHING_H
#define GPEMU_LOADER_BATCHING_BATCHING_H

#include <stdbool.h>
#include <stdint.h>

#include "common/plugin.h"

struct batching_config {
	uint32_t batch; /* samples of a batch, >= 1 */
	/* a position that is added is below the number of samples taken plus
	 * this */
	uint32_t ahead;
	const void *options; /* the batching's own; NULL: the defaults */
};

struct batching_ops {
	struct plugin plugin;
	/* Batches leave on completion, not in order. */
	bool any_order;
	/* NULL: the batches are the workers'; the hooks below are unused. */
	void (*add)(void *state, uint64_t position, void *item);
	/* After zeroing. -ENOMEM. */
	int (*init)(void *state, const struct batching_config *c);
	/* After init, also a failed one. */
	void (*fini)(void *state);
	/* An epoch of `n` samples; all of the one before were taken. Each of
	 * its positions is then added once. */
	void (*begin)(void *state, uint64_t n);
	/* Can the next batch be taken? */
	bool (*full)(const void *state);
	/*
	 * The items of the next batch, which is full: `batch` of them, or those
	 * that the epoch has left. Returns their number.
	 */
	uint32_t (*take)(void *state, void **ret);
};

extern const struct plugin *const batching_table[];

#endif
