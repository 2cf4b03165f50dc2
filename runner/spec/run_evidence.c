/* SPDX-License-Identifier: MIT */
#include "runner/spec/run_evidence.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/word.h"
#include "runner/spec/run_expect.h"

static const char *const names[EVIDENCE_KINDS] = {
	[EVIDENCE_INPUT] = "input",
	[EVIDENCE_SELF] = "self",
	[EVIDENCE_CALIBRATED] = "calibrated",
	[EVIDENCE_PREDICTION] = "prediction",
	[EVIDENCE_ORDER] = "order",
};

const char *evidence_name(enum evidence_kind kind)
{
	return names[kind];
}

const char *evidence_about(enum evidence_kind kind)
{
	static const char *const about[EVIDENCE_KINDS] = {
		"input: a number that was put in",
		"self: a closed form, or the simulator",
		"calibrated: published, fitted at other points",
		"prediction: published, nothing fitted",
		"order: only which is larger",
	};

	return about[kind];
}

int evidence_find(const char *name, struct err *err)
{
	return WORD_FIND(names, "kind", name, err);
}

bool evidence_reproduces(enum evidence_kind kind)
{
	return kind == EVIDENCE_CALIBRATED || kind == EVIDENCE_PREDICTION;
}

/* A check as the file has it. */
struct check {
	const struct workload *w;
	struct evidence *ev;
	const struct conf_node *node; /* of the check */
	const struct expect *expect;  /* or: */
	const struct published *published;
};

static int fail_key(const struct check *c, const char *key, struct err *err,
		    const char *text)
{
	const struct conf_node *node = key ? conf_node_get(c->node, key) : NULL;

	return conf_node_error(node ? node : c->node, c->w->path, err, "%s",
			       text);
}

/* --- the kind --------------------------------------------------------- */

static int parse_kind(const struct workload *w, const struct conf_node *node,
		      enum evidence_kind *ret, struct err *err)
{
	struct err unknown = { 0 };
	int i = evidence_find(node->value, &unknown);

	if (i < 0)
		return conf_node_error(node, w->path, err, "%s", unknown.text);
	*ret = (enum evidence_kind)i;
	return 0;
}

static int set_kind(const struct check *c, struct err *err)
{
	const struct conf_node *node = conf_node_get(c->node, "kind");

	if (!node && c->expect)
		node = conf_node_get(c->w->root, "kind");
	if (!node)
		return fail_key(c, NULL, err,
				"this check has no 'kind': input, self, "
				"calibrated, prediction or order");
	return parse_kind(c->w, node, &c->ev->kind, err);
}

/* --- what is judged --------------------------------------------------- */

static int note_published(void *ctx, const struct expr_ref *ref,
			  struct err *err)
{
	(void)err;
	*(bool *)ctx |= !strncmp(ref->name, "published.", 10);
	return 0;
}

/* Does it compare with a published value? */
static bool is_of_published(const struct check *c)
{
	bool found = c->published != NULL;

	if (c->expect && c->expect->that)
		expr_each(c->expect->expr, note_published, &found, NULL);
	return found;
}

/* Does it compare a number within a tolerance? Else it is an order or a bound.
 */
static bool has_tolerance(const struct check *c)
{
	return c->published
		       ? c->published->tolerance.given
		       : c->expect->that && expr_has_tolerance(c->expect->expr);
}

static int check_claim(const struct check *c, struct err *err)
{
	bool order = c->ev->kind == EVIDENCE_ORDER;

	if (c->published && order == has_tolerance(c))
		return fail_key(c, "kind", err,
				order ? "a tolerance judges a number; 'order' "
					"is the kind of a rank alone"
				      : "a rank without a tolerance is of "
					"kind 'order'");
	if (c->expect && !c->expect->that && !order)
		return fail_key(c, "kind", err,
				"rising and falling are of kind 'order'");
	if (evidence_reproduces(c->ev->kind) &&
	    (!is_of_published(c) || !has_tolerance(c)))
		return fail_key(c, "kind", err,
				"calibrated and prediction compare with "
				"published.NAME: a == b +- 5%");
	if (c->ev->reason && !is_of_published(c))
		return fail_key(c, "reason", err,
				"a reason is why a published value is not "
				"reproduced; this check names none");
	return 0;
}

/* --- what was fitted -------------------------------------------------- */

/* Is the point one of those that `fitted` names? */
static bool is_fitted(const struct workload *w, const struct conf_node *fitted,
		      size_t point)
{
	if (fitted->kind == CONF_KIND_MAPPING)
		return workload_matches(w, point, fitted);
	for (size_t i = 0; i < fitted->n; i++)
		if (workload_matches(w, point, fitted->items[i]))
			return true;
	return false;
}

static int check_points(const struct workload *w, const struct conf_node *node,
			struct err *err)
{
	if (node->kind == CONF_KIND_MAPPING && node->n)
		return workload_check_where(w, node, true, err);
	return conf_node_error(node, w->path, err,
			       "fitted is {AXIS: LABEL}, a list of these, or a "
			       "text");
}

static int check_fitted(const struct workload *w, const struct conf_node *node,
			struct err *err)
{
	int r = 0;

	if (node->kind == CONF_KIND_SCALAR && node->value[0])
		return 0;
	if (node->kind != CONF_KIND_SEQUENCE || !node->n)
		return check_points(w, node, err);
	for (size_t i = 0; r == 0 && i < node->n; i++)
		r = check_points(w, node->items[i], err);
	return r;
}

/* The published values that a check compares with. None may be missing, or at a
 * point that was fitted. */
struct compared {
	const struct workload *w;
	const struct conf_node *fitted; /* or NULL */
	size_t point;	/* at which the expectation is evaluated */
	size_t overlap; /* a point that is fitted; SIZE_MAX: none */
	size_t without; /* a point without a value; SIZE_MAX: none */
};

static void note_point(struct compared *c, const struct published *p,
		       size_t point)
{
	double ignored;

	if (published_at(c->w, p, point, &ignored) < 0)
		c->without = point;
	else if (c->fitted && is_fitted(c->w, c->fitted, point))
		c->overlap = point;
}

static int note_ref(void *ctx, const struct expr_ref *ref, struct err *err)
{
	struct compared *c = ctx;
	size_t point = c->point;

	(void)err;
	if (strncmp(ref->name, "published.", 10) != 0)
		return 0;
	for (size_t i = 0; expect_move(c->w, ref, i, &point) == 0; i++) {
		note_point(c, published_find(c->w, ref->name + 10), point);
		/* without a `*` there is one point only */
		if (!expr_ref_has_star(ref))
			break;
		point = c->point;
	}
	return 0;
}

static int check_compared(const struct check *c, const struct conf_node *fitted,
			  struct err *err)
{
	struct compared all = { .w = c->w,
				.fitted = fitted,
				.overlap = SIZE_MAX,
				.without = SIZE_MAX };
	char label[80];

	for (size_t i = 0; i < c->w->n_points; i++) {
		all.point = i;
		if (c->published)
			note_point(&all, c->published, i);
		else if (c->expect->that &&
			 workload_matches(c->w, i, c->expect->where))
			expr_each(c->expect->expr, note_ref, &all, NULL);
	}
	if (all.overlap != SIZE_MAX) {
		workload_label(c->w, all.overlap, label, sizeof(label));
		return conf_node_error(fitted, c->w->path, err,
				       "%s is fitted and judged: leave it out "
				       "with 'where'",
				       label);
	}
	if (!c->expect || all.without == SIZE_MAX)
		return 0;
	workload_label(c->w, all.without, label, sizeof(label));
	return conf_node_error(conf_node_get(c->node, "that"), c->w->path, err,
			       "nothing is published at %s: leave it out with "
			       "'where'",
			       label);
}

/* --- what a rig that measures nothing would reproduce ----------------- */

/* At a point, with 0 for all that is measured. */
struct idle {
	const struct workload *w;
	size_t point;
};

static int idle_value(void *ctx, const struct expr_ref *ref, size_t i,
		      double *ret)
{
	const struct idle *idle = ctx;
	struct idle there = *idle;
	const struct workload *w = idle->w;
	const struct metric *m = metric_find(&w->metrics, ref->name);
	struct expr_result of = { 0 };
	const char *missing;
	int r = 0;

	if (expect_move(w, ref, i, &there.point) < 0)
		return i ? -ERANGE : -ENOENT;
	if (!m)
		return expect_constant(w, ref, there.point, ret);
	if (m->of)
		r = expr_eval(m->expr, idle_value, &there, &of, &missing);
	*ret = of.side[0];
	return r;
}

/* arbitrary: a wider tolerance also holds for half of the value */
static const double widest = 0.5;

/* Is the tolerance at a point too wide to reproduce a number? */
static bool is_wide(const struct check *c, size_t point)
{
	const struct tolerance *t = c->published ? &c->published->tolerance
						 : NULL;
	struct idle idle = { c->w, point };
	struct expr_result res;
	const char *missing;
	double v;

	if (t)
		return published_at(c->w, c->published, point, &v) == 0 &&
		       t->value > widest * (t->relative ? 1 : fabs(v));
	if (!workload_matches(c->w, point, c->expect->where) ||
	    expr_eval(c->expect->expr, idle_value, &idle, &res, &missing) < 0)
		return false;
	for (size_t i = 1; i < res.n_sides; i++)
		if (res.slack[i] >
		    widest * fmax(fabs(res.side[i - 1]), fabs(res.side[i])))
			return true;
	return false;
}

static bool holds_idle(const struct check *c, size_t point)
{
	struct idle idle = { c->w, point };
	struct expr_result res;
	const char *missing;
	double v;

	if (!c->published)
		return workload_matches(c->w, point, c->expect->where) &&
		       expr_eval(c->expect->expr, idle_value, &idle, &res,
				 &missing) == 0 &&
		       res.holds;
	return published_at(c->w, c->published, point, &v) == 0 &&
	       fabs(v) <=
		       c->published->tolerance.value *
			       (c->published->tolerance.relative ? fabs(v) : 1);
}

/* At none of the points where a number is reproduced may `is` hold. */
static int refuse_at(const struct check *c,
		     bool (*is)(const struct check *c, size_t point),
		     const struct conf_node *node, const char *text,
		     struct err *err)
{
	char label[80];

	for (size_t i = 0; i < c->w->n_points; i++) {
		if (!evidence_reproduces(c->ev->kind) || !is(c, i))
			continue;
		workload_label(c->w, i, label, sizeof(label));
		return conf_node_error(node, c->w->path, err,
				       "%s: the tolerance %s", label, text);
	}
	return 0;
}

static int check_fit(const struct check *c, struct err *err)
{
	const struct conf_node *own = conf_node_get(c->node, "fitted");
	const struct conf_node *fitted =
		own ? own : conf_node_get(c->w->root, "fitted");
	bool calibrated = c->ev->kind == EVIDENCE_CALIBRATED;
	int r;

	if (c->ev->kind == EVIDENCE_PREDICTION && fitted)
		return fail_key(c, "kind", err,
				"'fitted' says that points are fitted: the "
				"kind is calibrated");
	if (own && !calibrated)
		return fail_key(c, "fitted", err,
				"fitted goes with kind: calibrated");
	if (!calibrated)
		return check_compared(c, NULL, err);
	if (!fitted)
		return fail_key(c, "kind", err,
				"calibrated needs 'fitted': the points that "
				"were fitted");
	r = check_fitted(c->w, fitted, err);
	if (fitted->kind == CONF_KIND_SCALAR)
		fitted = NULL;
	return r == 0 ? check_compared(c, fitted, err) : r;
}

/* --- all -------------------------------------------------------------- */

static int check_one(const struct check *c, struct err *err)
{
	int r = set_kind(c, err);

	if (r == 0)
		r = check_claim(c, err);
	if (r == 0)
		r = check_fit(c, err);
	if (r == 0)
		r = refuse_at(c, holds_idle, c->node,
			      "includes 0: a testbed that always says 0 would "
			      "reproduce it. Judge a bound, of kind 'order'",
			      err);
	if (r == 0)
		r = refuse_at(c, is_wide,
			      conf_node_get(c->node, c->published ? "tolerance"
								  : "that"),
			      "is more than half of the published value: judge "
			      "a bound, of kind 'order'",
			      err);
	return r;
}

/* Values that are only drawn have no verdict, so no kind. */
static int check_shown(const struct check *c, struct err *err)
{
	if (c->ev->kind_text || c->ev->fitted || c->ev->reason)
		return fail_key(c,
				c->ev->kind_text ? "kind"
				: c->ev->fitted	 ? "fitted"
						 : "reason",
				err,
				"these values are not judged: give a tolerance "
				"or a rank");
	return 0;
}

static int check_defaults(const struct workload *w, struct err *err)
{
	const struct conf_node *kind = conf_node_get(w->root, "kind");
	const struct conf_node *fitted = conf_node_get(w->root, "fitted");
	enum evidence_kind ignored;
	int r = kind ? parse_kind(w, kind, &ignored, err) : 0;

	return r == 0 && fitted ? check_fitted(w, fitted, err) : r;
}

int evidence_check(struct workload *w, struct err *err)
{
	const struct conf_node *series = conf_node_get(w->root, "published");
	const struct conf_node *expects = conf_node_get(w->root, "expect");
	struct published *p = w->published.items;
	struct expect *e = w->expects.items;
	int r = check_defaults(w, err);

	for (size_t i = 0; r == 0 && i < w->expects.n; i++) {
		struct check c = { .w = w,
				   .ev = &e[i].evidence,
				   .node = expects->items[i],
				   .expect = &e[i] };

		r = check_one(&c, err);
	}
	for (size_t i = 0; r == 0 && i < w->published.n; i++) {
		struct check c = { .w = w,
				   .ev = &p[i].evidence,
				   .node = series->items[i],
				   .published = &p[i] };

		r = (published_is_judged(&p[i]) ? check_one : check_shown)(&c,
									   err);
	}
	return r;
}
