/* SPDX-License-Identifier: MIT */
/* The records of an experiment, added up: per point and metric, the spread
 * over the repetitions. */
#ifndef GPEMU_RUNNER_RESULT_RUN_RESULT_H
#define GPEMU_RUNNER_RESULT_RUN_RESULT_H

#include <jansson.h>
#include <stdio.h>

#include "runner/spec/run_metric.h"
#include "runner/run/runner.h"

/* Where the time went: parts of the epochs' seconds. */
enum { RESULT_PARTS = 8 };
struct result_parts {
	double seconds[RESULT_PARTS]; /* as the report names them */
	double total;		      /* the rest of it is none of these */
	size_t n;		      /* epochs */
};

struct result {
	const struct runner *r;
	const struct metric **metrics; /* the table's columns, then the rest */
	size_t n_metrics;
	size_t n_columns;
	double *value;		/* [(point * n_metrics + metric) * repetitions +
				 * repetition]; NaN: there is none */
	struct spread *spreads; /* [point * n_metrics + metric] */
	size_t *n_ok, *n_failed;    /* cells, by point */
	struct result_parts *parts; /* by point */
	json_t *records;	    /* all that are "ok" */
	json_t *origins;	    /* of these: run_origins.h */
	json_t *first; /* some record, for what all have in common; or NULL */
};

/* Read the records of all cells that have one. -ENOMEM. */
int result_init(struct result *res, const struct runner *r, struct err *err);
void result_fini(struct result *res);

/* The spread of metric `m` at a point; n = 0: no record has it. */
const struct spread *result_at(const struct result *res, size_t point,
			       const struct metric *m);

/* Of metric `m` (by its place in `metrics`) in one run, to be set or read. */
static inline double *result_value(const struct result *res, size_t point,
				   size_t repetition, size_t m)
{
	return &res->value[(point * res->n_metrics + m) *
				   res->r->w->repetitions +
			   repetition];
}
/* The values of the metrics that are made of others. -ENOMEM. */
int result_derive(struct result *res);

/* {workload, seed, ..., cells: [{axes, n, failed, metrics{}}]}; or NULL. */
json_t *result_json(const struct result *res);

/* Room for any of these. */
enum { RESULT_TEXT = 32 };
/* A number for people: four digits, with an exponent below 1e-6 and from 1e15
 * on. */
void result_number(char *buf, size_t n, double v);
/* The same with so many digits, at most 17. */
void result_digits(char *buf, size_t n, double v, int digits);
/* A number for programs: as few digits as give it back. */
void result_exact(char *buf, size_t n, double v);

/* "12.31 (12.20-12.58)": median and its interval, from two values on. */
void result_spread(char *buf, size_t n, const struct spread *s);
/* What of it is real and what emulated, a few lines, and whether the runs were
 * made alike. */
void result_provenance(const struct result *res, FILE *f);
/* What the brackets are, a line; nothing for a single repetition. */
void result_explain(const struct result *res, FILE *f);

/*
 * One line a run, failed or not: workload, cell, axes, repetition, seed,
 * status, when, how long, how busy the machine was, then a column a metric.
 * What a run does not tell is empty.
 */
void result_csv(const struct result *res, FILE *f);

/* A table for people, and what in it is real and what emulated. */
void result_print(const struct result *res, FILE *f);

#endif
