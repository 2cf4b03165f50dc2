/* SPDX-License-Identifier: MIT */
#include "runner/spec/run_expect.h"

#include <errno.h>
#include <string.h>

#include "common/units.h"
#include "common/util.h"

const struct conf_field expect_fields[] = {
	{ CONF_KEY(name, CONF_STRING, struct expect) },
	{ CONF_KEY(that, CONF_STRING, struct expect) },
	{ CONF_KEY(rising, CONF_STRING, struct expect) },
	{ CONF_KEY(falling, CONF_STRING, struct expect) },
	{ CONF_KEY(along, CONF_STRING, struct expect) },
	{ CONF_KEY(of, CONF_LIST, struct expect), .item = CONF_STRING,
	  .item_size = sizeof(char *) },
	{ "slack", CONF_STRING, offsetof(struct expect, slack_text) },
	{ CONF_KEY(where, CONF_TREE, struct expect) },
	{ "kind", CONF_STRING, offsetof(struct expect, evidence.kind_text) },
	{ "fitted", CONF_TREE, offsetof(struct expect, evidence.fitted) },
	{ "reason", CONF_STRING, offsetof(struct expect, evidence.reason) },
	{ 0 },
};

const struct conf_field published_fields[] = {
	{ CONF_KEY(name, CONF_STRING, struct published) },
	{ CONF_KEY(source, CONF_STRING, struct published), .required = true },
	{ CONF_KEY(metric, CONF_STRING, struct published), .required = true },
	{ CONF_KEY(along, CONF_STRING, struct published), .required = true },
	{ CONF_KEY(values, CONF_TREE, struct published), .required = true },
	{ CONF_KEY(where, CONF_TREE, struct published) },
	{ "tolerance", CONF_STRING,
	  offsetof(struct published, tolerance_text) },
	{ CONF_KEY(rank, CONF_DOUBLE, struct published), .min = -1, .max = 1 },
	{ CONF_KEY(doubt, CONF_STRING, struct published) },
	{ "kind", CONF_STRING, offsetof(struct published, evidence.kind_text) },
	{ "fitted", CONF_TREE, offsetof(struct published, evidence.fitted) },
	{ "reason", CONF_STRING, offsetof(struct published, evidence.reason) },
	{ 0 },
};

static int parse_tolerance(const struct workload *w,
			   const struct conf_node *node, struct tolerance *ret,
			   struct err *err)
{
	char text[40];
	size_t n = node ? strlen(node->value) : 0;

	*ret = (struct tolerance){ .given = node != NULL };
	if (!node)
		return 0;
	ret->relative = n && node->value[n - 1] == '%';
	snprintf(text, sizeof(text), "%.*s", (int)(n - ret->relative),
		 node->value);
	if (n >= sizeof(text) || units_parse_double(text, &ret->value) < 0 ||
	    ret->value < 0)
		return conf_node_error(node, w->path, err,
				       "'%s' is not a number, or a number "
				       "with %%",
				       node->value);
	if (ret->relative)
		ret->value /= 100;
	return 0;
}

/* --- published -------------------------------------------------------- */

bool published_is_judged(const struct published *p)
{
	return p->tolerance.given || p->ranked;
}

const struct published *published_find(const struct workload *w,
				       const char *name)
{
	const struct published *p = w->published.items;

	for (size_t i = 0; i < w->published.n; i++)
		if (!strcmp(p[i].name, name))
			return &p[i];
	return NULL;
}

int published_at(const struct workload *w, const struct published *p,
		 size_t point, double *ret)
{
	int axis = workload_axis(w, p->along);
	const char *label = workload_at(w, point, (size_t)axis)->label;
	const struct conf_node *value = conf_node_get(p->values, label);

	if (!value || !workload_matches(w, point, p->where))
		return -ENOENT;
	return units_parse_double(value->value, ret);
}

int expect_constant(const struct workload *w, const struct expr_ref *ref,
		    size_t point, double *ret)
{
	if (!strncmp(ref->name, "published.", 10))
		return published_at(w, published_find(w, ref->name + 10), point,
				    ret);
	return workload_number(workload_setting(w, point, ref->name), ret);
}

/* --- checks without values -------------------------------------------- */

/* Does an expression depend on a measured value? */
struct measured {
	const struct workload *w;
	bool found;
};

static bool metric_measures(const struct workload *w, const struct metric *m);

static int note_measured(void *ctx, const struct expr_ref *ref, struct err *err)
{
	struct measured *all = ctx;
	const struct metric *m = metric_find(&all->w->metrics, ref->name);

	(void)err;
	all->found = all->found || (m && metric_measures(all->w, m));
	return 0;
}

static bool measures(const struct workload *w, const struct expr *e)
{
	struct measured all = { .w = w };

	expr_each(e, note_measured, &all, NULL);
	return all.found;
}

/* A derived metric uses only earlier ones, so the recursion ends. */
static bool metric_measures(const struct workload *w, const struct metric *m)
{
	return !m->of || measures(w, m->expr);
}

static int check_metric(const struct workload *w, const struct conf_node *node,
			struct err *err)
{
	const struct metric *m = metric_find(&w->metrics, node->value);

	if (m && metric_measures(w, m))
		return 0;
	return conf_node_error(node, w->path, err,
			       m ? "'%s' contains no measured metric, so the "
				   "check would always have the same result"
				 : "no metric '%s'",
			       node->value);
}

/* The number of labels of `along` with a published value that `where` selects.
 */
static size_t n_asked(const struct workload *w, const struct published *p)
{
	size_t axis = (size_t)workload_axis(w, p->along), n = 0;
	size_t n_labels = w->axes[axis].n_points;
	const struct conf_node *along =
		p->where ? conf_node_get(p->where, p->along) : NULL;

	for (size_t i = 0; i < n_labels; i++) {
		const char *label = w->axes[axis].points[i].label;

		n += conf_node_get(p->values, label) &&
		     (!along || workload_is_one_of(along, label));
	}
	return n;
}

static int check_axis(const struct workload *w, const struct conf_node *node,
		      struct err *err)
{
	if (workload_axis(w, node->value) >= 0)
		return 0;
	return conf_node_error(node, w->path, err, "no axis '%s'", node->value);
}

static int check_values(const struct workload *w, const struct published *p,
			struct err *err)
{
	size_t axis = (size_t)workload_axis(w, p->along);
	double ignored;

	if (p->values->kind != CONF_KIND_MAPPING || !p->values->n)
		return conf_node_error(p->values, w->path, err,
				       "values are LABEL: NUMBER");
	for (size_t i = 0; i < p->values->n; i++) {
		const struct conf_node *v = p->values->items[i];

		if (workload_find_label(w, axis, v->key) < 0)
			return err_set(err, -EINVAL,
				       "%s:%u:%u: axis '%s' has no '%s'",
				       conf_node_name(v, w->path), v->key_line,
				       v->key_column, p->along, v->key);
		if (v->kind != CONF_KIND_SCALAR ||
		    units_parse_double(v->value, &ignored) < 0)
			return conf_node_error(v, w->path, err,
					       "a published value is a "
					       "number");
	}
	return 0;
}

static int check_published(const struct workload *w, struct published *p,
			   const struct conf_node *node, struct err *err)
{
	int r = check_metric(w, conf_node_get(node, "metric"), err);

	if (r == 0)
		r = check_axis(w, conf_node_get(node, "along"), err);
	if (r == 0)
		r = check_values(w, p, err);
	if (r == 0)
		r = workload_check_where(w, p->where, true, err);
	if (r == 0)
		r = parse_tolerance(w, conf_node_get(node, "tolerance"),
				    &p->tolerance, err);
	p->ranked = conf_node_get(node, "rank") != NULL;
	if (r == 0 && p->ranked && p->rank <= -1)
		r = conf_node_error(
			conf_node_get(node, "rank"), w->path, err,
			"every order passes this rank; give a rank above -1");
	if (r == 0 && n_asked(w, p) < (p->ranked ? 2 : 1))
		r = conf_node_error(p->values, w->path, err,
				    p->ranked ? "a rank takes two values or "
						"more that 'where' lets "
						"through"
					      : "'where' lets none of these "
						"through");
	return r;
}

/* --- expressions ------------------------------------------------------ */

struct names {
	const struct workload *w;
	const struct conf_node *where;
	const struct metric *before; /* derived: it cannot see itself, nor
				      * what comes after it; or NULL */
	size_t offset;		     /* of the error */
};

static int check_select(struct names *n, const struct expr_ref *ref, size_t i,
			struct err *err)
{
	const struct expr_select *s = &ref->selects[i];
	int axis = workload_select(n->w, s->axis, s->label);

	n->offset = s->offset;
	if (axis == -ENOENT && s->axis && workload_axis(n->w, s->axis) < 0)
		return err_set(err, -EINVAL, "no axis '%s'", s->axis);
	if (axis == -ENOENT)
		return err_set(err, -EINVAL, "no axis has '%s'", s->label);
	if (axis < 0)
		return err_set(err, -EINVAL,
			       "several axes have '%s': write AXIS=%s",
			       s->label, s->label);
	while (i-- > 0)
		if (workload_select(n->w, ref->selects[i].axis,
				    ref->selects[i].label) == axis)
			return err_set(err, -EINVAL,
				       "axis '%s' is selected twice",
				       n->w->axes[axis].name);
	return 0;
}

/* Check that an axis or setting has a numeric value at every point used. */
static int check_number(struct names *n, const struct expr_ref *ref,
			struct err *err)
{
	for (size_t i = 0; i < n->w->n_points; i++) {
		const char *text = workload_setting(n->w, i, ref->name);
		double ignored;

		if (!text)
			return err_set(err, -EINVAL,
				       "no metric, axis or setting '%s'",
				       ref->name);
		if (workload_matches(n->w, i, n->where) &&
		    workload_number(text, &ignored) < 0)
			return err_set(err, -EINVAL,
				       "'%s' of %s is not a number", text,
				       ref->name);
	}
	return 0;
}

static int check_derived(struct names *n, const struct expr_ref *ref,
			 struct err *err)
{
	const struct metric *m = metric_find(&n->w->metrics, ref->name);

	if (m && m->of && m >= n->before)
		return err_set(err, -EINVAL,
			       "'%s' is not defined before it is used here",
			       ref->name);
	return m ? 0 : check_number(n, ref, err);
}

static int check_ref(void *ctx, const struct expr_ref *ref, struct err *err)
{
	struct names *n = ctx;
	int r = 0;

	for (size_t i = 0; r == 0 && i < ref->n_selects; i++)
		r = check_select(n, ref, i, err);
	if (r < 0)
		return r;
	n->offset = ref->offset;
	if (n->before)
		return check_derived(n, ref, err);
	if (!strncmp(ref->name, "published.", 10))
		return published_find(n->w, ref->name + 10)
			       ? 0
			       : err_set(err, -EINVAL,
					 "no published value is called '%s'",
					 ref->name + 10);
	return metric_find(&n->w->metrics, ref->name)
		       ? 0
		       : check_number(n, ref, err);
}

/* The position of an error: in a one-line text, columns count from its node. */
static int place(const struct workload *w, const struct conf_node *node,
		 size_t offset, const struct err *why, struct err *err)
{
	return err_set(err, -EINVAL, "%s:%u:%zu: %s",
		       conf_node_name(node, w->path), node->line,
		       node->column + offset + node->quoted, why->text);
}

static int check_that(const struct workload *w, struct expect *e,
		      const struct conf_node *node, struct err *err)
{
	struct names names = { .w = w, .where = e->where };
	struct err why = { 0 };
	size_t offset;
	int r = expr_parse(e->that, &e->expr, &offset, &why);

	if (r == -ENOMEM)
		return err_set(err, r, "out of memory");
	if (r < 0)
		return place(w, node, offset, &why, err);
	if (!expr_compares(e->expr))
		return conf_node_error(node, w->path, err,
				       "this compares nothing: a < b, or "
				       "a == b +- 5%%");
	if (expr_each(e->expr, check_ref, &names, &why) < 0)
		return place(w, node, names.offset, &why, err);
	if (!measures(w, e->expr))
		return conf_node_error(node, w->path, err,
				       "this names no metric, so it would "
				       "check nothing that was measured");
	return 0;
}

static int check_of(const struct workload *w, struct metric *m,
		    const struct conf_node *node, struct err *err)
{
	struct names names = { .w = w, .before = m };
	struct err why = { 0 };
	size_t offset;
	int r = expr_parse(m->of, &m->expr, &offset, &why);

	if (r == -ENOMEM)
		return err_set(err, r, "out of memory");
	if (r < 0)
		return place(w, node, offset, &why, err);
	if (expr_compares(m->expr))
		return conf_node_error(node, w->path, err,
				       "a metric is a value, this compares");
	if (expr_each(m->expr, check_ref, &names, &why) < 0)
		return place(w, node, names.offset, &why, err);
	return 0;
}

/* The row of combination `i` of the stars; -ERANGE: there is none. */
static int move_row(const struct workload *w, const struct expr_ref *ref,
		    size_t i, uint32_t *row)
{
	/* the last of several `*` varies fastest */
	for (size_t k = ref->n_selects; k-- > 0;) {
		const struct expr_select *s = &ref->selects[k];
		size_t a = (size_t)workload_select(w, s->axis, s->label);
		size_t n = w->axes[a].n_points;
		bool star = !strcmp(s->label, "*");

		row[a] = (uint32_t)(star ? i % n
					 : (size_t)workload_find_label(
						   w, a, s->label));
		if (star)
			i /= n;
	}
	return i ? -ERANGE : 0;
}

int expect_move(const struct workload *w, const struct expr_ref *ref, size_t i,
		size_t *point)
{
	uint32_t row[WORKLOAD_MAX_AXES];

	memcpy(row, workload_row(w, *point), w->n_axes * sizeof(*row));
	for (size_t k = 0; move_row(w, ref, k, row) == 0; k++) {
		size_t at = workload_find_row(w, row);

		if (at == WORKLOAD_NO_POINT || i--)
			continue;
		*point = at;
		return 0;
	}
	return -ERANGE;
}

/* --- expectations ----------------------------------------------------- */

/* `of`: labels of the axis `along`, each once. */
static int check_labels(const struct workload *w, const struct expect *e,
			const struct conf_node *of, struct err *err)
{
	size_t axis = (size_t)workload_axis(w, e->along);
	char *const *labels = e->of.items;

	for (size_t i = 0; i < e->of.n; i++) {
		if (workload_find_label(w, axis, labels[i]) < 0)
			return conf_node_error(of->items[i], w->path, err,
					       "axis '%s' has no '%s'",
					       e->along, labels[i]);
		for (size_t k = 0; k < i; k++)
			if (!strcmp(labels[i], labels[k]))
				return conf_node_error(of->items[i], w->path,
						       err, "'%s' twice",
						       labels[i]);
	}
	return 0;
}

static int check_order(const struct workload *w, const struct expect *e,
		       const struct conf_node *node, struct err *err)
{
	const char *key = e->rising ? "rising" : "falling";
	const struct conf_node *along = conf_node_get(node, "along");
	const struct conf_node *of = conf_node_get(node, "of"), *fixed;
	int r = check_metric(w, conf_node_get(node, key), err);
	size_t n;

	if (r == 0 && !along)
		return conf_node_error(node, w->path, err,
				       "%s needs 'along', an axis", key);
	if (r == 0)
		r = check_axis(w, along, err);
	if (r == 0)
		r = check_labels(w, e, of, err);
	if (r < 0)
		return r;
	n = of ? e->of.n : w->axes[workload_axis(w, e->along)].n_points;
	if (n < 2)
		return conf_node_error(of ? of : along, w->path, err,
				       "of fewer than two values none is "
				       "%s",
				       key);
	fixed = e->where ? conf_node_get(e->where, e->along) : NULL;
	return fixed ? conf_node_error(fixed, w->path, err,
				       "'of' says which values of '%s' count",
				       e->along)
		     : 0;
}

static int check_expect(const struct workload *w, struct expect *e,
			const struct conf_node *node, struct err *err)
{
	int kinds =
		(e->that != NULL) + (e->rising != NULL) + (e->falling != NULL);
	int r;

	if (kinds != 1)
		return conf_node_error(node, w->path, err,
				       "one of that, rising, falling");
	if (e->that && (e->along || e->of.n || e->slack_text))
		return conf_node_error(node, w->path, err,
				       "along, of and slack go with rising "
				       "and falling");
	r = workload_check_where(w, e->where, true, err);
	if (r == 0)
		r = parse_tolerance(w, conf_node_get(node, "slack"), &e->slack,
				    err);
	if (r < 0)
		return r;
	return e->that ? check_that(w, e, conf_node_get(node, "that"), err)
		       : check_order(w, e, node, err);
}

int expect_check(struct workload *w, struct err *err)
{
	const struct conf_node *published = conf_node_get(w->root, "published");
	const struct conf_node *expects = conf_node_get(w->root, "expect");
	const struct conf_node *metrics = conf_node_get(w->root, "metrics");
	struct published *p = w->published.items;
	struct expect *e = w->expects.items;
	struct metric *m = w->metrics.items;
	int r = 0;

	for (size_t i = 0; r == 0 && i < w->metrics.n; i++)
		if (m[i].of)
			r = check_of(w, &m[i],
				     conf_node_get(metrics->items[i], "of"),
				     err);
	for (size_t i = 0; r == 0 && i < w->published.n; i++)
		r = check_published(w, &p[i], published->items[i], err);
	for (size_t i = 0; r == 0 && i < w->expects.n; i++)
		r = check_expect(w, &e[i], expects->items[i], err);
	return r;
}

void expect_free(struct workload *w)
{
	struct expect *e = w->expects.items;
	struct metric *m = w->metrics.items;

	for (size_t i = 0; i < w->expects.n; i++) {
		expr_free(e[i].expr);
		e[i].expr = NULL;
	}
	for (size_t i = 0; i < w->metrics.n; i++) {
		expr_free(m[i].expr);
		m[i].expr = NULL;
	}
}
