/* SPDX-License-Identifier: MIT */
/*
 * How many accelerators can the storage feed? At each point of a workload's
 * axes the largest number of GPUs whose utilisation (AU) is still at least
 * what is asked for: the number is doubled until it is not, then halved in
 * between. Each try is a cell like any other, with train.gpus set, and keeps
 * its record.
 */
#ifndef GPEMU_RUNNER_RUN_FIND_H
#define GPEMU_RUNNER_RUN_FIND_H

#include "runner/run_experiment.h"

/*
 * The runs that decide about a number at the boundary, of which the median
 * counts, so that a single noisy run does not move it.
 * arbitrary: the least odd number that outvotes one outlier.
 */
enum { FIND_RUNS = 3 };

/*
 * The search, apart from what it asks; for tests too. `au` gives the
 * utilisation with `gpus` (>= 1) in run `run` (0 .. FIND_RUNS - 1); it is asked
 * once for each. 0, or a negative errno, which ends the search. Largest first
 * that `au` >= `wanted` holds for and for the next not: *ret, 0: none;
 * `most`: all up to it.
 */
typedef int (*find_au_fn)(void *ctx, uint64_t gpus, size_t run, double *ret);
int find_most(find_au_fn au, void *ctx, double wanted, uint64_t most,
	      uint64_t *ret);

/*
 * Search at every point, print the table, and write find-max.txt,
 * find-max.json, find-max.html and a plot of AU over GPUs. `au` is a share,
 * 0..1. -EINVAL: the workload varies or sets train.gpus, shares GPUs, or runs
 * programs; the text says where. *ret_failed: the search failed at a point,
 * others were done all the same.
 */
int find_run(struct experiment *e, const struct run_options *o,
	     bool *ret_failed, json_t **ret_summary, struct err *err);

#endif
