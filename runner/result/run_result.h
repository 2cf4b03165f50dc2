/* SPDX-License-Identifier: MIT */
/* The records of an experiment, aggregated: per point and metric, the spread
 * over the repetitions. */
#ifndef GPEMU_RUNNER_RESULT_RUN_RESULT_H
#define GPEMU_RUNNER_RESULT_RUN_RESULT_H

#include <jansson.h>
#include <stdio.h>

#include "runner/spec/run_metric.h"
#include "runner/run/runner.h"

/* The account of the time: parts of the epochs' seconds. */
enum { RESULT_PARTS = 9 };
struct result_parts {
	double seconds[RESULT_PARTS]; /* in the order of the report's labels */
	double total;		      /* includes time in none of the parts */
	size_t n;		      /* epochs */
};

struct result {
	const struct runner *r;
	const struct metric **metrics; /* the table's columns, then the rest */
	size_t n_metrics;
	size_t n_columns;
	double *value;	 /* [(point * n_metrics + metric) * repetitions +
			  * repetition]; NaN: there is none */
	bool *disturbed; /* the same: other programs may have changed it */
	struct spread *spreads;	    /* [point * n_metrics + metric] */
	size_t *n_ok, *n_failed;    /* cells, by point */
	struct result_parts *parts; /* by point */
	json_t *records;	    /* all that are "ok" */
	json_t *origins;	    /* of these: run_origins.h */
	json_t *first; /* any record, for common members; or NULL */
};

/* Read the records of all cells that have one. -ENOMEM. */
int result_init(struct result *res, const struct runner *r, struct err *err);
void result_fini(struct result *res);

/* The spread of metric `m` at a point; n = 0: no record has it, or there is no
 * such point (WORKLOAD_NO_POINT). */
const struct spread *result_at(const struct result *res, size_t point,
			       const struct metric *m);

/* The index in `metrics`. */
static inline size_t result_place(const struct result *res,
				  const struct metric *m)
{
	size_t i = 0;

	while (res->metrics[i] != m)
		i++;
	return i;
}
/* The value of metric `m` (index in `metrics`) in one run, to set or read. */
static inline double *result_value(const struct result *res, size_t point,
				   size_t repetition, size_t m)
{
	return &res->value[(point * res->n_metrics + m) *
				   res->r->w->repetitions +
			   repetition];
}
/* Of that value, to set or read. */
static inline bool *result_disturbed(const struct result *res, size_t point,
				     size_t repetition, size_t m)
{
	return &res->disturbed[result_value(res, point, repetition, m) -
			       res->value];
}

/* Compute the derived metrics; for tests too. -ENOMEM. */
int result_derive(struct result *res);
/* {workload, seed, ..., cells: [{axes, n, failed, metrics{}}]}; or NULL. */
json_t *result_json(const struct result *res);

/* Room for any of these. */
enum { RESULT_TEXT = 32 };
/* A number for display: four digits, with an exponent below 1e-6 and from 1e15
 * on. */
void result_number(char *buf, size_t n, double v);
/* The same with `digits` digits, at most 17. */
void result_digits(char *buf, size_t n, double v, int digits);
/* A number for programs: the fewest digits that round-trip. */
void result_exact(char *buf, size_t n, double v);

/*
 * The table, as text and pages show it: {axes: [name], columns: [{label,
 * unit}], rows: [{labels: [], values: [{median, range}], enough, ok, failed}],
 * enough}. Does the utilisation of a row reach that of `rules:`, which the last
 * has? "yes", "no", "-": there is none; null: the workload has no rules.
 */
json_t *result_table_json(const struct result *res);
/* A few lines on which parts are real and which emulated, and on mixed origins.
 */
void result_provenance(const struct result *res, FILE *f);
/* A line that explains the brackets; nothing for a single repetition. */
void result_explain(const struct result *res, FILE *f);

/*
 * One line per run, failed or not: workload, cell, axes, repetition, seed,
 * status, start, duration, load of the machine, then a column per metric.
 * Missing values are empty.
 */
void result_csv(const struct result *res, FILE *f);

/* The table as text, in lines of so many bytes (0: any), and which parts are
 * real and which emulated. */
void result_print(const struct result *res, size_t width, FILE *f);

#endif
