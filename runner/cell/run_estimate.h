/* SPDX-License-Identifier: MIT */
/* How long a workload will take, before it runs. */
#ifndef GPEMU_RUNNER_CELL_RUN_ESTIMATE_H
#define GPEMU_RUNNER_CELL_RUN_ESTIMATE_H

#include "runner/run/runner.h"

struct estimate {
	double seconds;	   /* wall, of the cells that have no record */
	size_t n_cells;	   /* these */
	size_t n_measured; /* of them: a run of the same point is known */
	size_t n_modelled; /* of them: from the profiles */
	size_t n_unknown;  /* of them: not counted in `seconds` */
};

/* What a job of a cell reads, by the profiles. */
struct estimate_shape {
	double bytes;	    /* of the dataset */
	double cache_bytes; /* of its mount; 0: it caches nothing */
	double steps;	    /* of each GPU in an epoch */
	bool direct;	    /* around the page cache */
};

/* -ENOENT: a program of the user's, or a dataset without a profile. */
int estimate_shape(const struct runner *r, const struct cell *cell,
		   const struct cell_job *job, struct estimate_shape *ret);

/*
 * Cells `todo` of loop_list. A point that has a record takes as long as that
 * run did. Else gpemu-train is taken for its slowest part: the GPUs (their
 * steps, copies and all-reduce as the run has them), or the pin stage, or
 * virtual cores, or the storage device with as many reads in flight as the
 * loader keeps, behind a cache that hits its share of the bytes (LRU less) from
 * the second epoch on; plus what starting and mounting takes. Jobs run side by
 * side, but for the GPUs of a gpemu-gpud. Programs of the user's and folders
 * are unknown, checkpoints are left out.
 */
int estimate_run(const struct runner *r, const size_t *todo, size_t n,
		 struct estimate *ret, struct err *err);

#endif
