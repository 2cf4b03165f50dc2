/* SPDX-License-Identifier: MIT */
/*
 * All cells of a workload, one after the other in its order, or several at
 * once; those that have a record are left out, and those that ran while the
 * machine was busy with other things run once more at the end: the quieter run
 * is kept.
 */
#ifndef GPEMU_RUNNER_RUN_LOOP_H
#define GPEMU_RUNNER_RUN_LOOP_H

#include "common/program/progress.h"
#include "runner/run/runner.h"

struct tally {
	size_t n_kept, n_done, n_failed;
	size_t n_again; /* of n_done: ran twice, the machine being busy */
	size_t n_noisy; /* of these: the second time too */
};

/*
 * The cells that have to run, by index and in their order; malloc'ed.
 * `fresh`: all of them. -ENOMEM.
 */
int loop_list(const struct runner *r, bool fresh, size_t **ret, size_t *ret_n);

/* Run them. 0 also when cells fail; -EINTR: a stop signal came. */
int loop_run(struct runner *r, bool fresh, enum progress_mode mode,
	     struct tally *ret);

enum { RUN_MAX_JOBS = 256 };

/*
 * Run them, so many at once, each worker a process with mounts of its own;
 * none runs again. -EINVAL: the workload does not say that its cells are
 * independent.
 */
int loop_run_jobs(struct runner *r, bool fresh, size_t jobs, struct tally *ret,
		  struct err *err);

#endif
