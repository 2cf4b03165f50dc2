/* SPDX-License-Identifier: MIT */
/*
 * report.html: one self-contained page on an experiment - question, verdicts,
 * table, plots, account of the time, set-up, provenance - without network,
 * scripts or other files.
 */
#ifndef GPEMU_RUNNER_PAGE_RUN_REPORT_H
#define GPEMU_RUNNER_PAGE_RUN_REPORT_H

#include "runner/result/run_verdict.h"

/* Write OUT/report.html atomically, from summary.json and the records. Draw the
 * plots first; missing plots are omitted. -errno. */
int report_write(const struct result *res, const struct verdicts *v,
		 const json_t *summary, struct err *err);

#endif
