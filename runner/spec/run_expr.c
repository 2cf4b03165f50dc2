/* SPDX-License-Identifier: MIT */
/*
 * Recursive descent into a tree of nodes:
 *
 *	check  = sum { ("<"|"<="|">"|">="|"==") sum } [ "+-" NUMBER ["%"] ]
 *	sum    = term { ("+"|"-") term }
 *	term   = factor { ("*"|"/") factor }
 *	factor = "-" factor | atom [ "^" factor ]
 *	atom   = NUMBER ["%"] | NAME "(" sum {"," sum} ")" | ref | "(" sum ")"
 *	ref    = NAME [ "[" select {"," select} "]" ]
 */
#include "runner/spec/run_expr.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"

/* arbitrary: deeper than any readable expression; bounds the recursion */
enum { MAX_DEPTH = 40 };

/* arbitrary: more than any readable expression has */
enum { EXPR_MAX_ARGS = 16 };

enum node_kind { NODE_NUMBER, NODE_REF, NODE_NEGATE, NODE_BINARY, NODE_CALL };

struct function {
	const char *name;
	double (*one)(double);			 /* of one value, or NULL: */
	double (*fold)(double so_far, double v); /* of several */
	bool mean;
};

struct node {
	enum node_kind kind;
	double number;
	char op;
	const struct function *function;
	struct expr_ref ref;
	struct node *args[EXPR_MAX_ARGS];
	size_t n_args;
};

struct expr {
	size_t n_sides;
	struct node *side[EXPR_SIDES];
	const char *op[EXPR_SIDES];
	double tolerance;
	bool relative;
};

struct parser {
	const char *text, *at;
	size_t depth;
	struct err *err;
};

/* --- functions -------------------------------------------------------- */

static double fold_min(double a, double b)
{
	return b < a ? b : a;
}

static double fold_max(double a, double b)
{
	return b > a ? b : a;
}

static double fold_sum(double a, double b)
{
	return a + b;
}

static const struct function functions[] = {
	{ .name = "ln", .one = log },
	{ .name = "log2", .one = log2 },
	{ .name = "exp", .one = exp },
	{ .name = "sqrt", .one = sqrt },
	{ .name = "abs", .one = fabs },
	{ .name = "floor", .one = floor },
	{ .name = "ceil", .one = ceil },
	{ .name = "round", .one = round },
	{ .name = "min", .fold = fold_min },
	{ .name = "max", .fold = fold_max },
	{ .name = "sum", .fold = fold_sum },
	{ .name = "mean", .fold = fold_sum, .mean = true },
};

static const struct function *find_function(const char *name, size_t n)
{
	for (size_t i = 0; i < ARRAY_SIZE(functions); i++)
		if (util_is(name, n, functions[i].name))
			return &functions[i];
	return NULL;
}

/* --- tree ------------------------------------------------------------- */

static void node_free(struct node *node)
{
	if (!node)
		return;
	for (size_t i = 0; i < node->n_args; i++)
		node_free(node->args[i]);
	for (size_t i = 0; i < node->ref.n_selects; i++) {
		free(node->ref.selects[i].axis);
		free(node->ref.selects[i].label);
	}
	free(node->ref.selects);
	free(node->ref.name);
	free(node);
}

void expr_free(struct expr *e)
{
	if (!e)
		return;
	for (size_t i = 0; i < e->n_sides; i++)
		node_free(e->side[i]);
	free(e);
}

bool expr_compares(const struct expr *e)
{
	return e->n_sides > 1;
}

/* --- parsing ---------------------------------------------------------- */

static struct node *parse_sum(struct parser *p);

static struct node *refuse(struct parser *p, const char *what)
{
	err_set(p->err, -EINVAL, "%s", what);
	return NULL;
}

static void skip_blanks(struct parser *p)
{
	while (isspace((unsigned char)*p->at))
		p->at++;
}

static bool accept(struct parser *p, const char *token)
{
	skip_blanks(p);
	if (strncmp(p->at, token, strlen(token)))
		return false;
	p->at += strlen(token);
	return true;
}

static struct node *node_new(struct parser *p, enum node_kind kind)
{
	struct node *node = calloc(1, sizeof(*node));

	if (!node)
		return refuse(p, "out of memory");
	node->kind = kind;
	return node;
}

/* A node that takes over these arguments, or NULL. */
static struct node *node_of(struct parser *p, enum node_kind kind, char op,
			    struct node *a, struct node *b)
{
	struct node *node = a && (b || kind == NODE_NEGATE) ? node_new(p, kind)
							    : NULL;

	if (!node) {
		node_free(a);
		node_free(b);
		return NULL;
	}
	node->op = op;
	node->args[node->n_args++] = a;
	if (b)
		node->args[node->n_args++] = b;
	return node;
}

static bool parse_number(struct parser *p, double *ret)
{
	char *end;

	skip_blanks(p);
	if (!isdigit((unsigned char)*p->at) && *p->at != '.')
		return false;
	*ret = strtod(p->at, &end);
	if (end == p->at || !isfinite(*ret))
		return false;
	p->at = end;
	return true;
}

static size_t name_length(const char *s)
{
	size_t n = 0;

	if (isalpha((unsigned char)s[0]) || s[0] == '_')
		while (isalnum((unsigned char)s[n]) || s[n] == '_' ||
		       s[n] == '.')
			n++;
	return n;
}

/* Text `from` to `to`, trimmed; NULL: empty, or no memory. */
static char *trimmed(const char *from, const char *to)
{
	while (from < to && isspace((unsigned char)*from))
		from++;
	while (to > from && isspace((unsigned char)to[-1]))
		to--;
	return to > from ? strndup(from, (size_t)(to - from)) : NULL;
}

/* "axis=label" or "label", between [ , and ]. */
static int parse_select(struct parser *p, struct expr_ref *ref)
{
	struct expr_select *s = &ref->selects[ref->n_selects];
	const char *end, *equals;

	skip_blanks(p);
	end = p->at + strcspn(p->at, ",]");
	if (!*end)
		return -EINVAL;
	s->offset = (size_t)(p->at - p->text);
	equals = memchr(p->at, '=', (size_t)(end - p->at));
	/* the label itself: a plug-in with an option, slru:protected=0.5 */
	if (equals && memchr(p->at, ':', (size_t)(equals - p->at)))
		equals = NULL;
	s->axis = equals ? trimmed(p->at, equals) : NULL;
	s->label = trimmed(equals ? equals + 1 : p->at, end);
	if (!s->label || (equals && !s->axis)) {
		free(s->axis);
		free(s->label);
		return -EINVAL;
	}
	ref->n_selects++;
	p->at = end;
	return 0;
}

static struct node *parse_ref(struct parser *p, size_t n)
{
	struct node *node = node_new(p, NODE_REF);
	bool bad = false;

	if (!node)
		return NULL;
	node->ref.offset = (size_t)(p->at - p->text);
	node->ref.name = strndup(p->at, n);
	node->ref.selects = calloc(EXPR_MAX_ARGS, sizeof(*node->ref.selects));
	bad = !node->ref.name || !node->ref.selects;
	p->at += n;
	if (!bad && accept(p, "[")) {
		do
			bad = node->ref.n_selects == EXPR_MAX_ARGS ||
			      parse_select(p, &node->ref) < 0;
		while (!bad && accept(p, ","));
		bad = bad || !accept(p, "]");
	}
	if (!bad)
		return node;
	node_free(node);
	return refuse(p, "expected a label or AXIS=LABEL in brackets");
}

static struct node *parse_call(struct parser *p, const struct function *f)
{
	struct node *node = node_new(p, NODE_CALL);

	while (node) {
		struct node *arg = node->n_args < EXPR_MAX_ARGS ? parse_sum(p)
								: NULL;

		if (!arg)
			break;
		node->args[node->n_args++] = arg;
		if (accept(p, ","))
			continue;
		node->function = f;
		if (!accept(p, ")"))
			refuse(p, "a ) is missing");
		else if (f->one && node->n_args != 1)
			refuse(p, "this function takes one value");
		else
			return node;
		break;
	}
	node_free(node);
	return refuse(p, "too many values");
}

static struct node *parse_atom(struct parser *p)
{
	struct node *node;
	double number;
	size_t n;

	if (parse_number(p, &number)) {
		node = node_new(p, NODE_NUMBER);
		if (node)
			node->number = accept(p, "%") ? number / 100 : number;
		return node;
	}
	if (accept(p, "(")) {
		node = parse_sum(p);
		if (!node || accept(p, ")"))
			return node;
		node_free(node);
		return refuse(p, "a ) is missing");
	}
	n = name_length(p->at);
	if (!n)
		return refuse(p, "expected a number, a name or ( here");
	if (p->at[n + strspn(p->at + n, " ")] != '(')
		return parse_ref(p, n);
	const struct function *f = find_function(p->at, n);

	if (!f)
		return refuse(p, "unknown function; known: ln log2 exp sqrt "
				 "abs floor ceil round min max sum mean");
	p->at += n;
	accept(p, "(");
	return parse_call(p, f);
}

static struct node *parse_factor(struct parser *p)
{
	struct node *node;

	if (p->depth >= MAX_DEPTH)
		return refuse(p, "nested too deeply");
	p->depth++;
	skip_blanks(p);
	if (accept(p, "-")) {
		node = node_of(p, NODE_NEGATE, '-', parse_factor(p), NULL);
	} else {
		node = parse_atom(p);
		if (node && accept(p, "^"))
			node = node_of(p, NODE_BINARY, '^', node,
				       parse_factor(p));
	}
	p->depth--;
	return node;
}

static struct node *parse_term(struct parser *p)
{
	struct node *node = parse_factor(p);

	for (;;) {
		skip_blanks(p);
		if (!node || !*p->at || !strchr("*/", *p->at))
			return node;
		char op = *p->at++;

		node = node_of(p, NODE_BINARY, op, node, parse_factor(p));
	}
}

static struct node *parse_sum(struct parser *p)
{
	struct node *node = parse_term(p);

	for (;;) {
		skip_blanks(p);
		if (!node || !*p->at || !strchr("+-", *p->at) ||
		    !strncmp(p->at, "+-", 2))
			return node;
		char op = *p->at++;

		node = node_of(p, NODE_BINARY, op, node, parse_term(p));
	}
}

static const char *parse_op(struct parser *p)
{
	static const char *const ops[] = { "<=", ">=", "==", "<", ">" };

	for (size_t i = 0; i < ARRAY_SIZE(ops); i++)
		if (accept(p, ops[i]))
			return ops[i];
	return NULL;
}

static int parse_tolerance(struct parser *p, struct expr *e)
{
	bool given = accept(p, "+-");

	if (given && !parse_number(p, &e->tolerance))
		return err_set(p->err, -EINVAL,
			       "a tolerance is a number, or a number with %%");
	if (given && accept(p, "%")) {
		e->relative = true;
		e->tolerance /= 100;
	}
	if (given != expr_has_tolerance(e))
		return err_set(p->err, -EINVAL,
			       given ? "a tolerance goes with =="
				     : "== needs a tolerance: a == b +- 5%%");
	return 0;
}

static int parse_sides(struct parser *p, struct expr *e)
{
	const char *op = NULL;

	do {
		if (e->n_sides == EXPR_SIDES)
			return err_set(p->err, -EINVAL, "too many comparisons");
		e->side[e->n_sides] = parse_sum(p);
		if (!e->side[e->n_sides])
			return -EINVAL;
		e->op[e->n_sides++] = op;
		op = parse_op(p);
	} while (op);
	return parse_tolerance(p, e);
}

/* `*` yields several values, which only min, max, mean and sum accept. */
static int check_stars(const struct node *node, bool folded, size_t *offset,
		       struct err *err)
{
	bool folds = node->kind == NODE_CALL && node->function->fold;
	int r = 0;

	for (size_t i = 0; i < node->ref.n_selects && !folded; i++)
		if (!strcmp(node->ref.selects[i].label, "*")) {
			*offset = node->ref.selects[i].offset;
			return err_set(err, -EINVAL,
				       "* is allowed only directly in min, "
				       "max, mean or sum");
		}
	for (size_t i = 0; r == 0 && i < node->n_args; i++)
		r = check_stars(node->args[i], folds, offset, err);
	return r;
}

int expr_parse(const char *text, struct expr **ret, size_t *ret_offset,
	       struct err *err)
{
	struct parser p = { .text = text, .at = text, .err = err };
	struct expr *e = calloc(1, sizeof(*e));
	int r = e ? parse_sides(&p, e) : -ENOMEM;

	skip_blanks(&p);
	*ret_offset = (size_t)(p.at - text);
	if (r == 0 && *p.at)
		r = err_set(err, -EINVAL,
			    "expected an operator here, not '%.20s'", p.at);
	for (size_t i = 0; r == 0 && i < e->n_sides; i++)
		r = check_stars(e->side[i], false, ret_offset, err);
	if (r < 0)
		expr_free(e);
	else
		*ret = e;
	return r;
}

/* --- evaluation ------------------------------------------------------- */

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

static bool compare_op(const char *op, double a, double b, double tolerance)
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
		holds = holds && compare_op(r->op[i], r->side[i - 1],
					    r->side[i], r->slack[i]);
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
