/* SPDX-License-Identifier: MIT */
/*
 * Axes written as a range: {from: 5%, to: 80%, count: 4}. It becomes the list
 * of its values, so that the other files know lists only.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/units.h"
#include "common/util.h"
#include "common/word.h"
#include "runner/spec/run_workload.h"

/* arbitrary: more is an error in the range, not a feasible experiment */
enum { MOST_VALUES = 10000 };

/* Significant digits: of steps, which are exact, and of other values. A cache
 * size of 12.34 % is as good as one of 12.3387 %. */
enum { DIGITS_STEP = 10, DIGITS = 4 };

struct range {
	const struct workload *w;
	const struct conf_node *node; /* the mapping */
	const struct conf_node *from_node, *to_node;
	double from, to;
	const char *unit;
	double step;  /* 0: none; a factor if `log` */
	double count; /* 0: none */
	bool log;
	bool whole; /* whole numbers without a unit stay whole */
};

/* --- parse ------------------------------------------------------------ */

/* "12.5%" is 12.5 and "%". */
static int parse_number(const struct range *r, const struct conf_node *node,
			double *ret, const char **ret_unit, struct err *err)
{
	char digits[40];
	size_t n;

	if (node->kind != CONF_KIND_SCALAR)
		return conf_node_error(node, r->w->path, err, "not a number");
	n = strspn(node->value, "+-.0123456789");
	snprintf(digits, sizeof(digits), "%.*s", (int)n, node->value);
	*ret_unit = node->value + n;
	return units_parse_double(digits, ret) < 0
		       ? conf_node_error(node, r->w->path, err,
					 "'%s' is not a number with a unit",
					 node->value)
		       : 0;
}

static int parse_bound(struct range *r, const char *key,
		       const struct conf_node **ret_node, double *ret,
		       struct err *err)
{
	const struct conf_node *node = conf_node_get(r->node, key);
	const char *unit;
	int code;

	if (!node)
		return conf_node_error(r->node, r->w->path, err,
				       "a range has from and to");
	*ret_node = node;
	code = parse_number(r, node, ret, &unit, err);
	if (code < 0)
		return code;
	if (r->unit && strcmp(r->unit, unit))
		return conf_node_error(node, r->w->path, err,
				       "from and to have different units");
	r->unit = unit;
	r->whole = r->whole && !unit[0] && !strchr(node->value, '.');
	return 0;
}

static int parse_step(struct range *r, struct err *err)
{
	const struct conf_node *step = conf_node_get(r->node, "step");
	const char *unit = "";
	int code;

	if (!step)
		return 0;
	code = parse_number(r, step, &r->step, &unit, err);
	if (code < 0)
		return code;
	if (strcmp(unit, r->log ? "" : r->unit))
		return conf_node_error(step, r->w->path, err,
				       r->log ? "with log, step is a factor"
					      : "step has another unit than "
						"from and to");
	if (r->step <= (r->log ? 1 : 0))
		return conf_node_error(step, r->w->path, err,
				       r->log ? "a factor above 1"
					      : "a step above 0");
	r->whole = r->whole && r->step == round(r->step);
	return 0;
}

static int parse_count(struct range *r, struct err *err)
{
	const struct conf_node *count = conf_node_get(r->node, "count");
	const char *unit = "";
	int code;

	if (!count)
		return 0;
	code = parse_number(r, count, &r->count, &unit, err);
	if (code == 0 && (unit[0] || r->count != round(r->count) ||
			  r->count < 2 || r->count > MOST_VALUES))
		code = conf_node_error(count, r->w->path, err,
				       "count is a number from 2 to %d",
				       MOST_VALUES);
	return code;
}

static int parse_log(struct range *r, struct err *err)
{
	const struct conf_node *log = conf_node_get(r->node, "log");

	if (!log)
		return 0;
	if (log->kind != CONF_KIND_SCALAR ||
	    (strcmp(log->value, "true") && strcmp(log->value, "false")))
		return conf_node_error(log, r->w->path, err,
				       "log is true or false");
	r->log = !strcmp(log->value, "true");
	return 0;
}

static int check_range(const struct range *r, struct err *err)
{
	const char *path = r->w->path;

	if (r->to <= r->from)
		return conf_node_error(r->to_node, path, err,
				       "to must be above from");
	if (r->log && r->from <= 0)
		return conf_node_error(r->from_node, path, err,
				       "with log, from must be above 0");
	if (r->step > 0 && r->count > 0)
		return conf_node_error(r->node, path, err,
				       "step or count, not both");
	if (r->step <= 0 && r->count <= 0)
		return conf_node_error(r->node, path, err,
				       "a range needs step or count");
	return 0;
}

static int parse_range(struct range *r, struct err *err)
{
	static const char *const known[] = { "from", "to", "step", "count",
					     "log" };
	int code = 0;

	for (size_t i = 0; i < r->node->n; i++)
		if (WORD_FIND(known, "", r->node->items[i]->key, NULL) < 0)
			return workload_key_error(r->w, r->node->items[i], err,
						  "a range has from, to, step, "
						  "count and log");
	code = parse_bound(r, "from", &r->from_node, &r->from, err);
	if (code == 0)
		code = parse_bound(r, "to", &r->to_node, &r->to, err);
	if (code == 0)
		code = parse_log(r, err);
	if (code == 0)
		code = parse_step(r, err);
	if (code == 0)
		code = parse_count(r, err);
	return code == 0 ? check_range(r, err) : code;
}

/* --- values ----------------------------------------------------------- */

/* A number from 0 to 1 as one between the bounds. */
static double between(const struct range *r, double share)
{
	return r->log ? r->from * pow(r->to / r->from, share)
		      : r->from + (r->to - r->from) * share;
}

static size_t n_steps(const struct range *r)
{
	double n = r->log ? log(r->to / r->from) / log(r->step)
			  : (r->to - r->from) / r->step;

	/* .1 + .1 + .1 is a little more than .3 */
	return (size_t)MIN(n + 1e-9, (double)MOST_VALUES) + 1;
}

/* "12.34%" */
static char *text_of(const struct range *r, double v, int digits)
{
	char rounded[40];

	snprintf(rounded, sizeof(rounded), "%.*e", digits - 1, v);
	v = r->whole ? round(v) : strtod(rounded, NULL);
	return util_text("%.15g%s", v, r->unit);
}

/* The `i`-th of `n` values, malloc'ed. */
static char *value_at(const struct range *r, size_t i, size_t n)
{
	if (r->step > 0)
		return text_of(r,
			       r->log ? r->from * pow(r->step, (double)i)
				      : r->from + r->step * (double)i,
			       DIGITS_STEP);
	if (i == 0 || i == n - 1)
		return strdup((i ? r->to_node : r->from_node)->value);
	return text_of(r, between(r, (double)i / (double)(n - 1)), DIGITS);
}

static struct conf_node *new_value(const struct range *r, char *text)
{
	struct conf_node *node = text ? calloc(1, sizeof(*node)) : NULL;

	if (!node) {
		free(text);
		return NULL;
	}
	*node = (struct conf_node){ .kind = CONF_KIND_SCALAR,
				    .file = r->node->file,
				    .line = r->node->line,
				    .column = r->node->column,
				    .value = text };
	return node;
}

static bool has_value(const struct conf_node *list, const char *text)
{
	for (size_t i = 0; i < list->n; i++)
		if (!strcmp(list->items[i]->value, text))
			return true;
	return false;
}

/* Values that are the same once they are rounded count once. */
static int make_values(const struct range *r, size_t n, struct conf_node *to)
{
	to->items = calloc(n, sizeof(*to->items));
	if (!to->items)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		char *text = value_at(r, i, n);
		struct conf_node *node;

		if (text && has_value(to, text)) {
			free(text);
			continue;
		}
		node = new_value(r, text);
		if (!node)
			return -ENOMEM;
		to->items[to->n++] = node;
	}
	return 0;
}

static int expand(const struct workload *w, struct conf_node *axis,
		  struct err *err)
{
	struct range r = { .w = w, .node = axis, .whole = true };
	struct conf_node values = { 0 };
	int code;

	if (axis->kind != CONF_KIND_MAPPING || !conf_node_get(axis, "from"))
		return 0;
	code = parse_range(&r, err);
	if (code < 0)
		return code;
	code = make_values(&r, r.step > 0 ? n_steps(&r) : (size_t)r.count,
			   &values);
	for (size_t i = 0; i < axis->n; i++)
		conf_node_free(axis->items[i]);
	free(axis->items);
	axis->kind = CONF_KIND_SEQUENCE;
	axis->items = values.items;
	axis->n = values.n;
	return code < 0 ? err_set(err, code, "out of memory") : 0;
}

int workload_expand_ranges(const struct workload *w, struct err *err)
{
	struct conf_node *axes = w->axes_tree;
	int code = 0;

	for (size_t i = 0; code == 0 && axes && i < axes->n; i++)
		if (axes->kind == CONF_KIND_MAPPING)
			code = expand(w, axes->items[i], err);
	return code;
}
