/* SPDX-License-Identifier: MIT */
/* The outcome of the expectations of run_expect.h. */
#ifndef GPEMU_RUNNER_RESULT_RUN_VERDICT_H
#define GPEMU_RUNNER_RESULT_RUN_VERDICT_H

#include "runner/spec/run_expr.h"
#include "runner/result/run_result.h"

struct verdict {
	char *check;   /* the expectation */
	char *at;      /* labels of the point; "": everywhere */
	char *numbers; /* "12.3 < 15.2", or the missing value */
	char *ours;    /* "12.3" */
	char *wanted;  /* "< 15.2"; "" if the check itself says it */
	bool pass;
};

struct verdicts {
	struct verdict *items;
	size_t n, n_failed;
};

/*
 * Check all expectations and published values. A check without a value at any
 * point fails. -ENOMEM.
 */
int verdicts_init(struct verdicts *v, const struct result *res,
		  struct err *err);
void verdicts_fini(struct verdicts *v);
/* The digits (result_digits) that its numbers need to show why it holds or
 * fails; at least four. */
int verdict_digits(const struct expr_result *r);
/* A line "PASS check, at: numbers" per verdict, and the number passed. */
void verdicts_print(const struct verdicts *v, FILE *f);
/* [{check, at, numbers, ours, wanted, pass}] */
json_t *verdicts_json(const struct verdicts *v);
/* [{name, source, doubt, metric, unit, judged, values: [{at, published,
 * ours}]}]: all published values, checked or not; `ours` null: not measured. */
json_t *published_json(const struct result *res);

#endif
