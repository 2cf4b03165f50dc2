/* SPDX-License-Identifier: MIT */
/* Estimates the time of a workload before it runs: gpemu-train --simulate. */
#ifndef GPEMU_RUNNER_CELL_RUN_ESTIMATE_H
#define GPEMU_RUNNER_CELL_RUN_ESTIMATE_H

#include "runner/run/runner.h"

struct estimate {
	double seconds;	    /* wall time of the cells without a record */
	size_t n_cells;	    /* these */
	size_t n_measured;  /* of them: from an earlier run of the same point */
	size_t n_simulated; /* of them: their point was simulated */
	size_t n_mean;	    /* of them: the mean of those */
	/* of them: not counted in `seconds`; they are simulations, or cannot be
	 * simulated */
	size_t n_itself, n_unknown;
	struct err why;	  /* of the first unknown one */
	json_t *records;  /* of the simulated jobs */
	json_t *left_out; /* {WHAT: true}: by --approximate */
};

/*
 * Cells `todo` of loop_list. A point with a record takes as long as that run.
 * Otherwise gpemu-train --simulate --approximate gets the configuration of each
 * job, alone, with that of its mount, and a dataset of the same sizes if it is
 * yet to be made; to that the time to mount and start is added. Jobs run
 * concurrently, but shared GPUs are at least as long busy as all of them
 * together. The simulations are bounded in number and time; the other points
 * take their mean. User programs are unknown; a simulation takes the time of
 * its computation. -ENOMEM, -EINTR. Free with estimate_fini, failed or not.
 */
int estimate_run(struct runner *r, const size_t *todo, size_t n,
		 struct estimate *ret, struct err *err);
void estimate_fini(struct estimate *e);

#endif
