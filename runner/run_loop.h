/* SPDX-License-Identifier: MIT */
/*
 * Runs the cells of a workload in order, or several concurrently. Cells with a
 * record are skipped. Cells disturbed by other load run again at the end
 * (run_again.h).
 *
 * Each cell is locked while it runs. A cell that another gpemu-run has is left
 * to it; at the end this one waits for it, and runs it if it has no record
 * then: the other one was killed, or its run failed.
 */
#ifndef GPEMU_RUNNER_RUN_LOOP_H
#define GPEMU_RUNNER_RUN_LOOP_H

#include "common/program/progress.h"
#include "runner/run/runner.h"

struct tally {
	size_t n_kept, n_done, n_failed;
	size_t n_other; /* run by another gpemu-run meanwhile */
};

/* Besides the cells without a record. */
enum loop_cells { LOOP_NEW, LOOP_DISTURBED, LOOP_ALL };

/* The indices of the cells of the shard to run, in order; malloc'ed.
 * -ENOMEM. */
int loop_list(const struct runner *r, enum loop_cells which, size_t **ret,
	      size_t *ret_n);

/* Run them. 0 also when cells fail; -EINTR: a stop signal came. */
int loop_run(struct runner *r, enum loop_cells which, enum progress_mode mode,
	     struct tally *ret);

enum { RUN_MAX_JOBS = 256 };

/*
 * Run them concurrently; each worker is a process with its own mounts. No cell
 * is repeated. -EINVAL: the workload does not say `independent`.
 */
int loop_run_jobs(struct runner *r, enum loop_cells which, size_t jobs,
		  struct tally *ret, struct err *err);

#endif
