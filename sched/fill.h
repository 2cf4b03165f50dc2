/* SPDX-License-Identifier: MIT */
/* Tasks that arrive and never leave: how full can a cluster be made? */
#ifndef GPEMU_SCHED_FILL_H
#define GPEMU_SCHED_FILL_H

#include <stdatomic.h>

#include "common/hist.h"
#include "sched/core/placement.h"
#include "sched/trace/workload.h"

enum { FILL_POINTS_MAX = 16 };

struct fill {
	const struct cluster *cluster; /* all free */
	const struct workload *workload;
	/* Arrived load at which samples are taken: GPUs that were asked for,
	 * over those of the cluster. Ascending; the last one ends the run. */
	double points[FILL_POINTS_MAX];
	size_t n_points;
	const atomic_bool *stop; /* set from any thread: -EINTR */
};

/* The cluster when so much load has arrived. */
struct fill_point {
	double allocated; /* share of the GPUs */
	double free_gpus;
	double frag; /* share of the free GPUs that typical tasks cannot use */
	bool reached;
};

struct fill_result {
	struct fill_point points[FILL_POINTS_MAX];
	uint64_t n_arrived, n_placed;
	struct hist decisions; /* wall time of each */
};

/* -EINVAL with a text: the placement breaks its contract; -EINTR, -ENOMEM. */
int fill_run(const struct fill *fill, const struct placement_ops *ops,
	     const void *options, uint64_t seed, struct fill_result *ret,
	     struct err *err);

#endif
