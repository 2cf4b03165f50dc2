/* SPDX-License-Identifier: MIT */
/*
 * Compares two result folders: the change at each point and metric, its
 * significance, and the smallest change that would have been significant.
 */
#ifndef GPEMU_RUNNER_RESULT_RUN_COMPARE_H
#define GPEMU_RUNNER_RESULT_RUN_COMPARE_H

#include <jansson.h>
#include <stdio.h>

#include "common/err.h"

/*
 * Compare the summaries (A/summary.json, or a path to such a file):
 *
 *	{a, b, workload, differs: [{what, a, b}] (what else is not the same),
 *	 only_a[], only_b[], changes: [{axes{}, metric, unit, n_a, n_b, paired,
 *	 median_a, median_b, scale, change, low, high, detectable, p, p_holm,
 *	 significant}]}
 *
 * `scale` is "ratio" or "difference", `change` the result of stats_change()
 * over all runs, paired by seed if the smaller side has no other seeds;
 * `detectable` the smallest significant change, with Holm's correction at its
 * strictest. p_holm: corrected over the points of the metric; significant:
 * p_holm < 0.05. Missing numbers are null.
 *
 * For two lists of workloads: {a, b, workloads: [the above for each], only_a[],
 * only_b[]}.
 *
 * `metric` NULL: all of them. -ENOENT: no summary; -EINVAL: not one, or a list
 * and a workload, or nothing in common, or no such metric.
 */
int compare_folders(const char *a, const char *b, const char *metric,
		    json_t **ret, struct err *err);

/* run_compare_text.c: as tables, in lines of so many bytes (0: any). */
void compare_print(const void *comparison, size_t width, FILE *f);

/* Append to `to` each member that differs, as {what: "base.train.batch", a, b};
 * `what`: the key of both, or "". */
void compare_members(json_t *to, const char *what, json_t *a, json_t *b);
/* {NAME: hash} of {NAME: {file, hash, ...}}: the paths do not matter. */
json_t *compare_hashes(const json_t *files);

#endif
