/* SPDX-License-Identifier: MIT */
/* The outcome of the expectations of run_expect.h. */
#ifndef GPEMU_RUNNER_RESULT_RUN_VERDICT_H
#define GPEMU_RUNNER_RESULT_RUN_VERDICT_H

#include "runner/result/run_result.h"
#include "runner/result/run_score.h"
#include "runner/spec/run_expr.h"

/*
 * Check all expectations and published values. What has no value at any point
 * is undecided. -ENOMEM.
 */
int verdicts_init(struct verdicts *v, const struct result *res,
		  struct err *err);
void verdicts_fini(struct verdicts *v);
/* The digits (result_digits) that its numbers need to show why it holds or
 * fails; at least four. */
int verdict_digits(const struct expr_result *r);
/* A line "PASS (order)  check, at: numbers" per verdict, and how many passed.
 */
void verdicts_print(const struct verdicts *v, FILE *f);
/* [{check, kind, at, numbers, ours, wanted, interval, low, high, n, needed,
 * verdict, note}] */
json_t *verdicts_json(const struct verdicts *v);
/* The same as a tidy table (RFC 4180), with the name of the workload. */
void verdicts_csv(const struct verdicts *v, const char *workload, FILE *f);
/* [{name, source, doubt, metric, unit, judged, values: [{at, published,
 * ours}]}]: all published values, checked or not; `ours` null: not measured. */
json_t *published_json(const struct result *res);

#endif
