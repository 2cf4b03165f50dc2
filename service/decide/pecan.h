/* SPDX-License-Identifier: MIT */
/*
 * The order of transforms, and the split between remote and local ones, that
 * process and send the fewest bytes. Source: Graur et al., "Pecan:
 * Cost-Efficient ML Data Preprocessing with Automatic Transformation Ordering
 * and Hybrid Placement", USENIX ATC 2024, AutoOrder: transforms that shrink the
 * data go first and those that inflate it last, as far as they commute; the
 * authors' code, tensorflow/core/data/service/easl/ordering_utils.cc, sorts by
 * bytes produced over bytes consumed.
 *
 * A transform with a size factor f and a cost c per byte costs c for each byte
 * that reaches it. Of two that commute, i belongs before j if
 *
 *	c_i + f_i c_j < c_j + f_j c_i, that is
 *	(f_i - 1) / c_i < (f_j - 1) / c_j
 *
 * which, with equal costs, is Pecan's order. The split is like a transform that
 * keeps the size: those that shrink come before it. Both follow from the one
 * order, so that the cost of the transforms and the bytes that are sent are
 * least at the same time.
 */
#ifndef GPEMU_SERVICE_DECIDE_PECAN_H
#define GPEMU_SERVICE_DECIDE_PECAN_H

#include <stdbool.h>
#include <stdint.h>

enum { PECAN_MOST = 64 };

struct pecan_transform {
	double size; /* bytes out for a byte in, > 0 */
	double cost; /* CPU time for a byte in, >= 0, any unit */
	/* May trade places with its neighbours that commute, too. Else it keeps
	 * its place, and none moves across it: a decoder, a batch, whatever the
	 * user wants where it is. */
	bool commutes;
};

/* Per byte that enters the pipeline. */
struct pecan_cost {
	double cpu;  /* of all transforms */
	double sent; /* bytes at the split */
};

struct pecan_plan {
	uint32_t order[PECAN_MOST]; /* of the given transforms */
	uint32_t n_remote;	    /* the first of them: before the split */
	struct pecan_cost cost;
};

/* Of transforms in an order, with the first n_remote before the split. */
struct pecan_cost pecan_cost(const struct pecan_transform *t,
			     const uint32_t *order, uint32_t n,
			     uint32_t n_remote);
/*
 * The best legal order and the best split, the latest of several. Transforms
 * that are equal keep their order. -EINVAL: more than PECAN_MOST, a size or a
 * cost out of range.
 */
int pecan_plan(const struct pecan_transform *t, uint32_t n,
	       struct pecan_plan *ret);

#endif
