/* SPDX-License-Identifier: MIT */
/* What a workload reads from its records. */
#ifndef GPEMU_RUNNER_SPEC_RUN_USED_H
#define GPEMU_RUNNER_SPEC_RUN_USED_H

#include "runner/spec/run_metric.h"
#include "runner/spec/run_workload.h"

/*
 * The metrics with a path that checks, published values, columns and plots
 * depend on, derived metrics resolved, and `au` if the number of GPUs is
 * searched; of a workload with none of these its own metrics and `seconds`.
 * *ret: malloc'ed, the metrics are the workload's. -ENOMEM.
 */
int metrics_used(const struct workload *w, const struct metric ***ret,
		 size_t *ret_n);

#endif
