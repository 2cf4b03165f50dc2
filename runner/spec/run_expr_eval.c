/* SPDX-License-Identifier: MIT */
/* Evaluates the tree of an expression. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/util.h"
#include "runner/spec/run_expr.h"

static int each(const struct node *node, expr_ref_fn fn, void *ctx,
		struct err *err)
{
	int r = node->kind == NODE_REF ? fn(ctx, &node->ref, err) : 0;

	for (size_t i = 0; r == 0 && i < node->n_args; i++)
		r = each(node->args[i], fn, ctx, err);
	return r;
}

int expr_each(const struct expr *e, expr_ref_fn fn, void *ctx, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < e->n_sides; i++)
		r = each(e->side[i], fn, ctx, err);
	return r;
}

bool expr_has_tolerance(const struct expr *e)
{
	for (size_t i = 1; i < e->n_sides; i++)
		if (e->op[i][0] == '=')
			return true;
	return false;
}

struct eval {
	expr_value_fn fn;
	void *ctx;
	const char *missing;
};

static int eval(struct eval *ev, const struct node *node, double *ret);

bool expr_ref_has_star(const struct expr_ref *ref)
{
	for (size_t i = 0; i < ref->n_selects; i++)
		if (!strcmp(ref->selects[i].label, "*"))
			return true;
	return false;
}

/* Add the values of one argument to a min, max, mean or sum. */
static int fold_arg(struct eval *ev, const struct node *call,
		    const struct node *arg, double *so_far, size_t *n)
{
	bool many = arg->kind == NODE_REF && expr_ref_has_star(&arg->ref);

	for (size_t i = 0; i == 0 || many; i++) {
		double v;
		int r = many ? ev->fn(ev->ctx, &arg->ref, i, &v)
			     : eval(ev, arg, &v);

		if (many && r == -ERANGE)
			return 0;
		if (r == -ENOENT && many)
			ev->missing = arg->ref.name;
		if (r < 0)
			return r;
		*so_far = *n ? call->function->fold(*so_far, v) : v;
		(*n)++;
	}
	return 0;
}

static int eval_call(struct eval *ev, const struct node *node, double *ret)
{
	double v = 0;
	size_t n = 0;
	int r = 0;

	if (node->function->one) {
		r = eval(ev, node->args[0], &v);
		*ret = node->function->one(v);
		return r;
	}
	for (size_t i = 0; r == 0 && i < node->n_args; i++)
		r = fold_arg(ev, node, node->args[i], &v, &n);
	*ret = node->function->mean && n ? v / (double)n : v;
	return r;
}

static double apply(char op, double a, double b)
{
	switch (op) {
	case '+': return a + b;
	case '-': return a - b;
	case '*': return a * b;
	case '/': return a / b;
	default: return pow(a, b);
	}
}

static int eval(struct eval *ev, const struct node *node, double *ret)
{
	double a = 0, b = 0;
	int r;

	switch (node->kind) {
	case NODE_NUMBER: *ret = node->number; return 0;
	case NODE_REF:
		r = ev->fn(ev->ctx, &node->ref, 0, ret);
		if (r == -ENOENT)
			ev->missing = node->ref.name;
		return r;
	case NODE_CALL: return eval_call(ev, node, ret);
	case NODE_NEGATE:
		r = eval(ev, node->args[0], &a);
		*ret = -a;
		return r;
	default:
		r = eval(ev, node->args[0], &a);
		if (r == 0)
			r = eval(ev, node->args[1], &b);
		*ret = apply(node->op, a, b);
		return r;
	}
}

static bool compare(const char *op, double a, double b, double tolerance)
{
	if (op[0] == '=')
		return fabs(a - b) <=
		       tolerance + EXPR_ROUNDING * MAX(fabs(a), fabs(b));
	if (op[0] == '<')
		return op[1] ? a <= b : a < b;
	return op[1] ? a >= b : a > b;
}

bool expr_holds(const struct expr_result *r)
{
	bool holds = true;

	for (size_t i = 1; i < r->n_sides; i++)
		holds = holds && compare(r->op[i], r->side[i - 1], r->side[i],
					 r->slack[i]);
	return holds;
}

int expr_eval(const struct expr *e, expr_value_fn fn, void *ctx,
	      struct expr_result *ret, const char **ret_missing)
{
	struct eval ev = { .fn = fn, .ctx = ctx };

	*ret = (struct expr_result){ .n_sides = e->n_sides };
	for (size_t i = 0; i < e->n_sides; i++) {
		int r = eval(&ev, e->side[i], &ret->side[i]);

		*ret_missing = ev.missing;
		if (r < 0)
			return r;
		if (!isfinite(ret->side[i]))
			return -EDOM;
		ret->op[i] = e->op[i];
	}
	for (size_t i = 1; i < e->n_sides; i++)
		if (e->op[i][0] == '=')
			ret->slack[i] =
				e->relative ? e->tolerance * fabs(ret->side[i])
					    : e->tolerance;
	ret->holds = expr_holds(ret);
	return 0;
}
