/* SPDX-License-Identifier: MIT */
/* Estimates the time of a workload before it runs. */
#ifndef GPEMU_RUNNER_CELL_RUN_ESTIMATE_H
#define GPEMU_RUNNER_CELL_RUN_ESTIMATE_H

#include "runner/run/runner.h"

struct estimate {
	double seconds;	   /* wall time of the cells without a record */
	size_t n_cells;	   /* these */
	size_t n_measured; /* of them: from an earlier run of the same point */
	size_t n_modelled; /* of them: from the profiles */
	/* of them: not counted in `seconds` */
	size_t n_simulated, n_unknown;
};

/* The reads of a job, from the profiles. */
struct estimate_shape {
	double bytes;	    /* of the dataset */
	double cache_bytes; /* of its mount, or of all nodes; 0: no cache */
	double steps;	    /* of each GPU in an epoch */
	bool direct;	    /* bypasses the page cache */
};

/* -ENOENT: a user's program, or a dataset without a profile. */
int estimate_shape(const struct runner *r, const struct cell *cell,
		   const struct cell_job *job, struct estimate_shape *ret);

/*
 * Cells `todo` of loop_list. A point with a record takes as long as that run.
 * Otherwise the time of gpemu-train is that of its bottleneck: the GPUs (steps,
 * copies and all-reduce), the pin stage, the virtual cores, or the storage
 * device at the loader's queue depth, behind a cache with a hit ratio of its
 * share of the bytes (LRU less) from the second epoch on; plus the time to
 * mount and start. Jobs run concurrently, except on the shared GPUs of a
 * gpemu-gpud. User programs and folders are unknown; a simulation takes the
 * time of its computation; checkpoints are ignored.
 */
int estimate_run(const struct runner *r, const size_t *todo, size_t n,
		 struct estimate *ret, struct err *err);

#endif
