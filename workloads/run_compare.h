/* SPDX-License-Identifier: MIT */
/*
 * Two result folders side by side: what changed between them, by point and
 * metric, and whether it is more than chance.
 */
#ifndef GPEMU_WORKLOADS_RUN_COMPARE_H
#define GPEMU_WORKLOADS_RUN_COMPARE_H

#include <jansson.h>
#include <stdio.h>

#include "common/err.h"

/*
 * Compare the summaries (A/summary.json; a path to such a file will do):
 *
 *	{a, b, differs[] (what else is not the same),
 *	 only_a[], only_b[], changes: [{axes{}, metric, unit, n_a, n_b,
 *	 median_a, median_b, ratio, ratio_low, ratio_high, p, p_holm,
 *	 significant}]}
 *
 * p: Mann-Whitney; p_holm: corrected for the points of that metric;
 * significant: p_holm < 0.05. ratio: median B over median A, with a 95 %
 * bootstrap interval. -ENOENT: no summary; -EINVAL: not one.
 */
int compare_folders(const char *a, const char *b, json_t **ret,
		    struct err *err);

/* As a table; `metric` NULL: all of them. */
void compare_print(const json_t *comparison, const char *metric, FILE *f);

#endif
