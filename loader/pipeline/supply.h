/* SPDX-License-Identifier: MIT */
/*
 * Where completed batches come from: the workers of this process (flow.h), or a
 * staging area that several jobs fill (staged.h). Each file has the hooks of
 * one; pipeline.c chooses.
 */
#ifndef GPEMU_LOADER_PIPELINE_SUPPLY_H
#define GPEMU_LOADER_PIPELINE_SUPPLY_H

#include "loader/core/batch.h"

struct supply_ops {
	/* Batches are other jobs', too: they have read_share, their workers'
	 * clocks are not here, and their memory cannot be lent. */
	bool shared;
	/* As pipeline_begin. */
	void (*begin)(void *state, uint64_t epoch, const uint32_t *order,
		      uint64_t n);
	/* As flow_next. */
	int (*next)(void *state, uint64_t deadline, struct batch **ret);
	/* In any order; shared ones in that of `next`. */
	void (*release)(void *state, struct batch *b);
	/* Completed batches that `next` has not taken. */
	uint32_t (*n_complete)(void *state);
};

struct supply {
	const struct supply_ops *ops;
	void *state;
};

#endif
