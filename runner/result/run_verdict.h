/* SPDX-License-Identifier: MIT */
/* What an experiment showed of what run_expect.h says of it. */
#ifndef GPEMU_RUNNER_RESULT_RUN_VERDICT_H
#define GPEMU_RUNNER_RESULT_RUN_VERDICT_H

#include "runner/spec/run_expr.h"
#include "runner/result/run_result.h"

struct verdict {
	char *check;   /* what was expected */
	char *at;      /* where: labels; "" everywhere */
	char *numbers; /* "12.3 < 15.2", or what is missing */
	char *ours;    /* "12.3" */
	char *wanted;  /* "< 15.2"; "" where the check itself says it */
	bool pass;
};

struct verdicts {
	struct verdict *items;
	size_t n, n_failed;
};

/*
 * Judge all expectations and published values. One that judges nothing, at
 * whatever point, has failed. -ENOMEM.
 */
int verdicts_init(struct verdicts *v, const struct result *res,
		  struct err *err);
void verdicts_fini(struct verdicts *v);
/* How many digits its numbers need (result_digits) to show why it holds, or
 * does not; at least four. */
int verdict_digits(const struct expr_result *r);
/* "PASS check, at: numbers" a line, and how many passed. */
void verdicts_print(const struct verdicts *v, FILE *f);
/* [{check, at, numbers, ours, wanted, pass}] */
json_t *verdicts_json(const struct verdicts *v);
/* [{name, source, doubt, metric, unit, judged, values: [{at, published,
 * ours}]}]: all that is published, judged or not; `ours` null: not measured. */
json_t *published_json(const struct result *res);

#endif
