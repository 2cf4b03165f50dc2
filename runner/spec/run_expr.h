/* SPDX-License-Identifier: MIT */
/*
 * Expressions of `expect:`: arithmetic over metrics and axis values, and a
 * chain of comparisons.
 *
 *	0.6 <= seconds[sff] / seconds[minio] <= 0.85
 *	hit_ratio == 100 * (c + (1 - c) * ln(1 - c)) +- 2
 *	samples_per_s == min(cores * 155, 342) +- 5%
 *	max(seconds[fs.cache_policy=*]) < 40
 *
 * Numbers (35% is 0.35), + - * / ^ ( ), ln log2 exp sqrt abs floor ceil round
 * of one value, min max mean sum of any number; comparisons < <= > >= and ==,
 * which needs a tolerance: absolute, or with % relative to its right side.
 * A name may be followed by selectors in brackets: AXIS=LABEL, or LABEL if
 * unambiguous; `*` stands for all labels and is allowed only directly in min,
 * max, mean and sum. The caller resolves names.
 */
#ifndef GPEMU_RUNNER_SPEC_RUN_EXPR_H
#define GPEMU_RUNNER_SPEC_RUN_EXPR_H

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"

struct expr;

struct expr_select {
	char *axis;  /* NULL: any axis that has the label */
	char *label; /* "*": all of the axis */
	size_t offset;
};

struct expr_ref {
	char *name;
	size_t offset; /* in the text, from 0 */
	struct expr_select *selects;
	size_t n_selects;
};

enum { EXPR_SIDES = 12 };

/* Of the larger side: what an == allows for rounding; 2.1 - 2 is a little more
 * than 0.1. */
#define EXPR_ROUNDING 1e-12

struct expr_result {
	size_t n_sides; /* 1: no comparison */
	double side[EXPR_SIDES];
	const char *op[EXPR_SIDES]; /* op[i] precedes side[i], i > 0 */
	double slack[EXPR_SIDES];   /* of an == before that side, absolute */
	bool holds;		    /* all comparisons hold */
};

/*
 * -EINVAL with a message, and the position of the error in *ret_offset. Safe on
 * any text. Free with expr_free (NULL allowed).
 */
int expr_parse(const char *text, struct expr **ret, size_t *ret_offset,
	       struct err *err);
void expr_free(struct expr *e);
/* Is it a comparison? */
bool expr_compares(const struct expr *e);
/* Is one of its comparisons an == with a tolerance? */
bool expr_has_tolerance(const struct expr *e);
/* Does the reference stand for several values? */
bool expr_ref_has_star(const struct expr_ref *ref);

/* Call `fn` for every reference, in the order of the text, until it fails. */
typedef int (*expr_ref_fn)(void *ctx, const struct expr_ref *ref,
			   struct err *err);
int expr_each(const struct expr *e, expr_ref_fn fn, void *ctx, struct err *err);

/*
 * The value of a reference with `*` selectors at their `i`-th label. 0;
 * -ENOENT: no value; -ERANGE: there is no i-th label.
 */
typedef int (*expr_value_fn)(void *ctx, const struct expr_ref *ref, size_t i,
			     double *ret);
/* -ENOENT: a value is missing, *ret_missing (borrowed) says whose; -EDOM: the
 * result is no number. */
int expr_eval(const struct expr *e, expr_value_fn fn, void *ctx,
	      struct expr_result *ret, const char **ret_missing);

/* Do the comparisons of these sides hold? */
bool expr_holds(const struct expr_result *r);

#endif
