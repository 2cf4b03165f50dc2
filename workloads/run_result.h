/* SPDX-License-Identifier: MIT */
/* The records of an experiment, added up: per point and metric, the spread
 * over the repetitions. */
#ifndef GPEMU_WORKLOADS_RUN_RESULT_H
#define GPEMU_WORKLOADS_RUN_RESULT_H

#include <jansson.h>
#include <stdio.h>

#include "workloads/run_metric.h"
#include "workloads/runner.h"

struct result {
	const struct runner *r;
	const struct metric **metrics; /* the table's columns, then the rest */
	size_t n_metrics;
	size_t n_columns;
	struct spread *spreads;	 /* [point * n_metrics + metric] */
	size_t *n_ok, *n_failed; /* cells, by point */
	json_t *first; /* some record, for what all have in common; or NULL */
};

/* Read the records of all cells that have one. -ENOMEM. */
int result_init(struct result *res, const struct runner *r, struct err *err);
void result_fini(struct result *res);

/* The spread of metric `m` at a point; n = 0: no record has it. */
const struct spread *result_at(const struct result *res, size_t point,
			       const struct metric *m);

/* {workload, seed, ..., cells: [{axes, n, failed, metrics{}}]}; or NULL. */
json_t *result_json(const struct result *res);

/* A number for people: four digits, never an exponent for what they meet
 * here. */
void result_number(char *buf, size_t n, double v);

/* A table for people, and what in it is real and what emulated. */
void result_print(const struct result *res, FILE *f);

#endif
