/* SPDX-License-Identifier: MIT */
/* `gpemu-run merge`: one folder of the records of several. */
#ifndef GPEMU_RUNNER_RUN_MERGE_H
#define GPEMU_RUNNER_RUN_MERGE_H

#include "runner/run_experiment.h"

/*
 * Copy the records of the result folders `folders`, ended by NULL, to
 * o->output, which may be one of them, and report. -EINVAL: they are of
 * different workloads, versions or inputs. *ret_failed: a cell or a check
 * failed, or a cell has no record, which the log says. *ret_summary as of
 * experiment_report().
 */
int merge_folders(char *const *folders, const struct run_options *o,
		  bool *ret_failed, json_t **ret_summary, struct stop *ret_stop,
		  struct err *err);

#endif
