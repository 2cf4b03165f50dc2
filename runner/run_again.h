/* SPDX-License-Identifier: MIT */
/* Runs disturbed cells again (runner/cell/run_disturb.h). */
#ifndef GPEMU_RUNNER_RUN_AGAIN_H
#define GPEMU_RUNNER_RUN_AGAIN_H

#include "common/program/progress.h"
#include "runner/run/runner.h"

/*
 * `cells`: `n` indices of cells that have just been run; reordered. Those that
 * other load disturbed run once more, and a last time if that was quieter for
 * any of them; the quieter run is kept. None runs again once all checks are
 * decided, if they are what matters (`by_checks`). The records of the rest say
 * `disturbed`. 0 also when a run fails; -EINTR: a stop signal came.
 */
int again_run(struct runner *r, size_t *cells, size_t n, bool by_checks,
	      enum progress_mode mode);

#endif
