/* SPDX-License-Identifier: MIT */
/*
 * Two result folders side by side: what changed between them, by point and
 * metric, whether it is more than chance, and how much would have been.
 */
#ifndef GPEMU_RUNNER_RESULT_RUN_COMPARE_H
#define GPEMU_RUNNER_RESULT_RUN_COMPARE_H

#include <jansson.h>
#include <stdio.h>

#include "common/err.h"

/*
 * Compare the summaries (A/summary.json; a path to such a file will do):
 *
 *	{a, b, workload, differs: [{what, a, b}] (what else is not the same),
 *	 only_a[], only_b[], changes: [{axes{}, metric, unit, n_a, n_b, paired,
 *	 median_a, median_b, scale, change, low, high, detectable, p, p_holm,
 *	 significant}]}
 *
 * `scale` is "ratio" or "difference", `change` what stats_change() says of all
 * runs, those with the same seed as pairs where the smaller side has no other
 * ones; `detectable` what would have been significant, with Holm's correction
 * at its strictest. p_holm: corrected for the points of that metric;
 * significant: p_holm < 0.05. A number that there is not is null.
 *
 * Of two lists of workloads: {a, b, workloads: [the same of each], only_a[],
 * only_b[]}.
 *
 * `metric` NULL: all of them. -ENOENT: no summary; -EINVAL: not one, or a list
 * and a workload, or nothing in common, or no such metric.
 */
int compare_folders(const char *a, const char *b, const char *metric,
		    json_t **ret, struct err *err);

/* run_compare_text.c: as tables. */
void compare_print(const json_t *comparison, FILE *f);

#endif
