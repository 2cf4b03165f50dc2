/* SPDX-License-Identifier: MIT */
/*
 * Load tests of disturbed cells (runner/cell/run_load.h): those most at risk
 * run once more, beside busy processes. If the metrics of the workload do not
 * change, the first run stands, and so do those of the cells less at risk.
 */
#ifndef GPEMU_RUNNER_RUN_LOAD_TEST_H
#define GPEMU_RUNNER_RUN_LOAD_TEST_H

#include <sys/types.h>

#include "runner/run/runner.h"

/*
 * `cells`: `n` indices of disturbed cells of this machine; reordered. How many
 * stay disturbed; they come first. Their records, and those of the cleared
 * ones, get `cell.load_test`. At most `tests` tests are made. -EINTR: a stop
 * signal came; -ENOMEM.
 */
ssize_t load_test_run(struct runner *r, size_t *cells, size_t n,
		      unsigned tests);

#endif
