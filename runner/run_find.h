/* SPDX-License-Identifier: MIT */
/*
 * How many accelerators can the storage feed? At each point of a workload's
 * axes, search the largest number of GPUs whose accelerator utilisation (AU)
 * reaches the requested one: double the number until it fails, then bisect.
 * Each try is a normal cell with train.gpus set, and has a record.
 */
#ifndef GPEMU_RUNNER_RUN_FIND_H
#define GPEMU_RUNNER_RUN_FIND_H

#include "runner/run_experiment.h"

/*
 * Number of runs for each side of the boundary; their median decides, so that a
 * single noisy run does not move the boundary. arbitrary: the least odd number
 * that outvotes one outlier.
 */
enum { FIND_RUNS = 3 };

/*
 * The search by itself; for tests too. `au` returns the utilisation with `gpus`
 * (>= 1) in run `run` (0 .. FIND_RUNS - 1); it is called once for each. It
 * returns 0, or a negative errno, which ends the search. *ret: the number for
 * which `au` >= `wanted`, but not for the next one; 0: none; `most`: all pass.
 */
typedef int (*find_au_fn)(void *ctx, uint64_t gpus, size_t run, double *ret);
int find_most(find_au_fn au, void *ctx, double wanted, uint64_t most,
	      uint64_t *ret);

/*
 * Search at every point, print the table, and write find-max.txt,
 * find-max.json, find-max.html and a plot of AU over GPUs. `au` is a share,
 * 0..1. -EINVAL: the workload varies or sets train.gpus, shares GPUs, or runs
 * programs; the text says where. *ret_failed: the search failed at some point;
 * the other points are complete.
 */
int find_run(struct experiment *e, const struct run_options *o,
	     bool *ret_failed, json_t **ret_summary, struct err *err);

#endif
