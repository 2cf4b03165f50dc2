/* SPDX-License-Identifier: MIT */
/*
 * A metric: a number from a record, and its spread over repetitions.
 *
 * A path names a value: `totals.seconds`, `epochs[0].bytes`, `epochs[-1].au`.
 * A range names several: `epochs[1:].seconds`, `epochs[2:5].seconds`;
 * `[steady]` is `[1:]`, or `[0:]` when there is only one: the first epoch
 * starts with a cold cache. Paths joined by " + " are added, value by value.
 * With `per`, the values are divided by those of `per`. The metric is the
 * median of several values.
 *
 * A derived metric is an expression (run_expr.h) over earlier metrics, axes and
 * settings, evaluated per repetition: `100 * (1 - seconds[100%] / seconds)`.
 */
#ifndef GPEMU_RUNNER_SPEC_RUN_METRIC_H
#define GPEMU_RUNNER_SPEC_RUN_METRIC_H

#include <jansson.h>
#include <stddef.h>

#include "common/conf/conf.h"
#include "common/err.h"
#include "runner/spec/run_expr.h"
#include "runner/spec/run_stats.h"

/* Metrics of a workload own their texts, freed by conf_free; those of built-in
 * ones are literals. */
struct metric {
	const char *name;
	const char *path;
	const char *of;	   /* expression of a derived metric, or NULL */
	const char *per;   /* or NULL */
	double scale;	   /* factor; 0: 1 */
	const char *label; /* for plots and tables; NULL: the name */
	const char *unit;  /* or NULL */
	struct expr *expr; /* `of`, parsed by expect_check; or NULL */
};

/* For a CONF_MAP, with metric_check as its `check`. */
extern const struct conf_field metric_fields[];
int metric_check(const void *metric, struct err *err);

/* The built-in metrics, terminated by a NULL name. */
extern const struct metric metric_builtin[];

/* By name in `own` (struct metric), then among the built-in ones; or NULL. */
const struct metric *metric_find(const struct conf_list *own, const char *name);

/* -EINVAL: not a path; the text says what is wrong. */
int metric_check_path(const char *path, struct err *err);

/* The value of a path. 0; -ENOENT: not in the record, or a division by zero. */
int metric_value(const struct metric *m, const json_t *record, double *ret);

#endif
