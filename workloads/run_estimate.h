/* SPDX-License-Identifier: MIT */
/* How long a workload will take, before it runs. */
#ifndef GPEMU_WORKLOADS_RUN_ESTIMATE_H
#define GPEMU_WORKLOADS_RUN_ESTIMATE_H

#include "workloads/runner.h"

struct estimate {
	double seconds;	   /* wall, of the cells that have no record */
	size_t n_cells;	   /* these */
	size_t n_measured; /* of them: a run of the same point is known */
	size_t n_modelled; /* of them: from the profiles */
	size_t n_unknown;  /* of them: not counted in `seconds` */
};

/*
 * Cells `todo` of loop_list. A point that has a record takes as long as that
 * run did. Else gpemu-train is taken for its slowest part: the GPU by its
 * profile, or the storage device with as many reads in flight as the loader
 * keeps, behind a cache that hits its share of the bytes from the second epoch
 * on; plus what mounting takes. Programs of the user's are unknown.
 */
int estimate_run(const struct runner *r, const size_t *todo, size_t n,
		 struct estimate *ret, struct err *err);

#endif
