/* SPDX-License-Identifier: MIT */
/*
 * Points of the grid: all combinations of the axes, less those that are
 * excluded, kept as rows of indices of values in ascending order. Their labels,
 * neighbours and settings.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/units.h"
#include "common/json.h"
#include "common/util.h"
#include "runner/spec/run_workload.h"

/* --- values ---------------------------------------------------------- */

json_t *workload_value(const struct conf_node *value)
{
	json_t *j;

	if (value->kind == CONF_KIND_SCALAR)
		return json_bytes(value->value);
	j = value->kind == CONF_KIND_MAPPING ? json_object() : json_array();
	for (size_t i = 0; j && i < value->n; i++) {
		json_t *item = workload_value(value->items[i]);
		int r = value->kind == CONF_KIND_MAPPING
				? json_object_set_new(j, value->items[i]->key,
						      item)
				: json_array_append_new(j, item);

		if (r < 0) {
			json_decref(j);
			return NULL;
		}
	}
	return j;
}

/* --- points ----------------------------------------------------------- */

int workload_axis(const struct workload *w, const char *name)
{
	for (size_t i = 0; i < w->n_axes; i++)
		if (!strcmp(w->axes[i].name, name))
			return (int)i;
	return -ENOENT;
}

const uint32_t *workload_row(const struct workload *w, size_t point)
{
	return &w->points[point * w->n_axes];
}

const struct axis_point *workload_at(const struct workload *w, size_t point,
				     size_t axis)
{
	return &w->axes[axis].points[workload_row(w, point)[axis]];
}

static int compare_rows(const void *a, const void *b, void *n_axes)
{
	const uint32_t *x = a, *y = b;

	for (size_t i = 0; i < *(const size_t *)n_axes; i++)
		if (x[i] != y[i])
			return x[i] < y[i] ? -1 : 1;
	return 0;
}

size_t workload_find_row(const struct workload *w, const uint32_t *row)
{
	size_t low = 0, high = w->n_points, n = w->n_axes;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int c = compare_rows(row, workload_row(w, middle), &n);

		if (c == 0)
			return middle;
		if (c < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return WORKLOAD_NO_POINT;
}

void workload_label(const struct workload *w, size_t point, char *buf, size_t n)
{
	size_t at = 0;

	snprintf(buf, n, "all");
	for (size_t i = 0; i < w->n_axes && at < n; i++)
		at += (size_t)snprintf(buf + at, n - at, "%s%s", i ? ", " : "",
				       workload_at(w, point, i)->label);
	/* cut between characters, as JSON needs it */
	while (*buf && (at = util_utf8(buf)))
		buf += at;
	*buf = '\0';
}

json_t *workload_labels(const struct workload *w, size_t point)
{
	json_t *j = json_object();

	for (size_t i = 0; i < w->n_axes; i++)
		json_add_text(j, w->axes[i].name,
			      workload_at(w, point, i)->label);
	return j;
}

int workload_find_label(const struct workload *w, size_t axis,
			const char *label)
{
	for (size_t i = 0; i < w->axes[axis].n_points; i++)
		if (!strcmp(w->axes[axis].points[i].label, label))
			return (int)i;
	return -ENOENT;
}

int workload_select(const struct workload *w, const char *axis,
		    const char *label)
{
	bool star = !strcmp(label, "*");
	int found = -ENOENT;

	for (size_t i = 0; i < w->n_axes; i++) {
		if (axis ? strcmp(axis, w->axes[i].name) : star)
			continue;
		if (!star && workload_find_label(w, i, label) < 0)
			continue;
		if (found >= 0)
			return -EINVAL;
		found = (int)i;
	}
	return found;
}

size_t workload_move(const struct workload *w, size_t point, size_t axis,
		     size_t value)
{
	uint32_t row[WORKLOAD_MAX_AXES];

	memcpy(row, workload_row(w, point), w->n_axes * sizeof(*row));
	row[axis] = (uint32_t)value;
	return workload_find_row(w, row);
}

bool workload_is_one_of(const struct conf_node *node, const char *label)
{
	if (node->kind == CONF_KIND_SCALAR)
		return !strcmp(node->value, label);
	for (size_t i = 0; i < node->n; i++)
		if (!strcmp(node->items[i]->value, label))
			return true;
	return false;
}

static bool row_matches(const struct workload *w, const uint32_t *row,
			const struct conf_node *where)
{
	for (size_t i = 0; where && i < where->n; i++) {
		const struct conf_node *item = where->items[i];
		int a = workload_axis(w, item->key);

		if (!workload_is_one_of(item, w->axes[a].points[row[a]].label))
			return false;
	}
	return true;
}

int workload_null_axis(const struct workload *w)
{
	return w->null ? workload_axis(w, w->null->items[0]->key) : -ENOENT;
}

size_t workload_null_point(const struct workload *w, size_t point)
{
	int axis = workload_null_axis(w);

	if (axis < 0)
		return WORKLOAD_NO_POINT;
	return workload_move(
		w, point, (size_t)axis,
		(size_t)workload_find_label(w, (size_t)axis,
					    w->null->items[0]->value));
}

bool workload_matches(const struct workload *w, size_t point,
		      const struct conf_node *where)
{
	const uint32_t *row = workload_row(w, point);

	if (w->null &&
	    !(where && conf_node_get(where, w->null->items[0]->key)) &&
	    row_matches(w, row, w->null))
		return false;
	return row_matches(w, row, where);
}

static int check_label(const struct workload *w, size_t axis,
		       const struct conf_node *node, struct err *err)
{
	if (node->kind == CONF_KIND_SCALAR &&
	    workload_find_label(w, axis, node->value) >= 0)
		return 0;
	return conf_node_error(node, w->path, err, "not a value of axis '%s'",
			       w->axes[axis].name);
}

int workload_check_where(const struct workload *w,
			 const struct conf_node *where, bool lists,
			 struct err *err)
{
	int r = 0;

	if (where && where->kind != CONF_KIND_MAPPING)
		return conf_node_error(where, w->path, err,
				       "not a mapping of axes to labels");
	for (size_t i = 0; where && i < where->n; i++) {
		const struct conf_node *item = where->items[i];
		int a = workload_axis(w, item->key);

		if (a < 0)
			return conf_node_error(item, w->path, err,
					       "no axis '%s'", item->key);
		if (!lists || item->kind != CONF_KIND_SEQUENCE)
			r = check_label(w, (size_t)a, item, err);
		else if (!item->n)
			r = conf_node_error(item, w->path, err,
					    "an empty list lets nothing "
					    "through");
		else
			for (size_t k = 0; r == 0 && k < item->n; k++)
				r = check_label(w, (size_t)a, item->items[k],
						err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* --- settings at a point ---------------------------------------------- */

int workload_each_at(const struct workload *w, size_t point,
		     int (*fn)(void *ctx, const struct setting *s), void *ctx)
{
	int r = 0;

	for (int pass = 0; pass < 4; pass++)
		for (size_t a = 0; a < w->n_axes; a++) {
			const struct axis_point *p = workload_at(w, point, a);
			const struct setting *s = p->settings;

			for (size_t k = 0; r == 0 && k < p->n_settings; k++)
				if (pass / 2 == (s[k].n_target != 0) &&
				    pass % 2 != setting_is_whole(&s[k]))
					r = fn(ctx, &s[k]);
		}
	return r;
}

static bool is_for_mounts(enum run_program program)
{
	return program == RUN_FS || program == RUN_DATA;
}

/* The name of the `i`-th mount or job; NULL: none, or it is the only one and
 * has no name. */
static const char *target_name(const struct workload *w,
			       enum run_program program, size_t i)
{
	const struct mount_spec *m = w->mounts.items;
	const struct job_spec *j = w->jobs.items;

	if (run_is_server(program))
		return NULL;
	if (is_for_mounts(program))
		return i < w->mounts.n ? m[i].name : NULL;
	return i < w->jobs.n ? j[i].name : NULL;
}

/* The value in the file for all, or for one if `i` is below their number. */
static const struct conf_node *written(const struct workload *w,
				       const struct setting *what, size_t i)
{
	bool one = target_name(w, what->program, i) != NULL;
	const struct mount_spec *m = w->mounts.items;
	const struct job_spec *j = w->jobs.items;
	const struct conf_node *map =
		what->program == RUN_DATA ? w->dataset : w->base[what->program];

	switch (one ? what->program : RUN_PROGRAMS) {
	case RUN_FS: map = m[i].fs; break;
	case RUN_DATA: map = m[i].dataset; break;
	case RUN_TRAIN: map = j[i].train; break;
	case RUN_EXEC: map = j[i].exec; break;
	case RUN_ENV: map = j[i].environment; break;
	default: break;
	}
	return map ? conf_node_get(map, what->key) : NULL;
}

/* The value of a key, for a mount or job. */
struct given {
	const struct setting *what;
	const char *target; /* NULL: it has no name */
	const struct conf_node *node;
};

static int give(void *ctx, const struct setting *s)
{
	struct given *g = ctx;

	if (s->program != g->what->program ||
	    (s->n_target &&
	     !(g->target && util_is(s->target, s->n_target, g->target))))
		return 0;
	if (!strcmp(s->key, g->what->key))
		g->node = s->value;
	else if (setting_is_whole(s))
		g->node = conf_node_get(s->value, g->what->key);
	return 0;
}

const struct conf_node *workload_given(const struct workload *w, size_t point,
				       const struct setting *what, size_t i)
{
	const char *target = target_name(w, what->program, i);
	const struct mount_spec *m = w->mounts.items;
	bool own_data = what->program == RUN_DATA && target && m[i].dataset;
	struct given g = { what, target,
			   own_data ? NULL : written(w, what, SIZE_MAX) };

	if (target && written(w, what, i))
		g.node = written(w, what, i);
	workload_each_at(w, point, give, &g);
	return g.node && g.node->kind == CONF_KIND_SCALAR ? g.node : NULL;
}

/* The value for one mount or job, or the common value of all. */
static const char *setting_of(const struct workload *w, size_t point,
			      const struct setting *what)
{
	const struct conf_node *all = NULL, *one;
	const char *name;
	bool first = true;

	for (size_t i = 0; i == 0 || target_name(w, what->program, i); i++) {
		name = target_name(w, what->program, i);
		if (what->n_target &&
		    !(name && util_is(what->target, what->n_target, name)))
			continue;
		one = workload_given(w, point, what, i);
		if (!one || (!first && strcmp(one->value, all->value)))
			return NULL;
		all = one;
		first = false;
	}
	return all ? all->value : NULL;
}

bool workload_decides(const struct workload *w, size_t axis, const char *name)
{
	const struct axis *a = &w->axes[axis];
	struct setting what;

	if (!strcmp(a->name, name))
		return true;
	for (size_t i = 0; workload_split_key(name, &what) && i < a->n_points;
	     i++)
		for (size_t k = 0; k < a->points[i].n_settings; k++)
			if (a->points[i].settings[k].program == what.program &&
			    !strcmp(a->points[i].settings[k].key, what.key))
				return true;
	return false;
}

const char *workload_setting(const struct workload *w, size_t point,
			     const char *name)
{
	int axis = workload_axis(w, name);
	const char *value = NULL;
	struct setting what;

	if (workload_split_key(name, &what))
		value = setting_of(w, point, &what);
	if (!value && axis >= 0)
		value = workload_at(w, point, (size_t)axis)->label;
	return value;
}

int workload_number(const char *text, double *ret)
{
	struct units_capacity c;
	uint64_t ns;

	if (units_parse_double(text, ret) == 0)
		return 0;
	if (units_parse_duration(text, &ns) == 0) {
		*ret = (double)ns / (double)NS_PER_S;
		return 0;
	}
	if (units_parse_capacity(text, &c) < 0)
		return -EINVAL;
	*ret = c.fraction >= 0 ? c.fraction : (double)c.bytes;
	return 0;
}

/* --- all points ------------------------------------------------------- */

/* arbitrary: more is an error in the axes, not a feasible experiment */
enum { MAX_POINTS = 100000 };

static uint32_t *row_at(const struct workload *w, size_t point)
{
	return &w->points[point * w->n_axes];
}

static bool is_excluded(const struct workload *w, const uint32_t *row)
{
	struct conf_node *const *items = w->excludes.items;

	for (size_t i = 0; i < w->excludes.n; i++)
		if (row_matches(w, row, items[i]))
			return true;
	return false;
}

/* The next combination, the last axis being the lowest digit; false: that was
 * the last one. */
static bool advance(const struct workload *w, uint32_t *row)
{
	for (size_t a = w->n_axes; a-- > 0;) {
		if (++row[a] < w->axes[a].n_points)
			return true;
		row[a] = 0;
	}
	return false;
}

static int make_grid(struct workload *w, struct err *err)
{
	uint32_t row[WORKLOAD_MAX_AXES] = { 0 };
	size_t n = 1;

	for (size_t a = 0; a < w->n_axes; a++) {
		n *= w->axes[a].n_points;
		if (n > MAX_POINTS)
			return conf_node_error(w->axes_tree, w->path, err,
					       "more than %d points",
					       MAX_POINTS);
	}
	w->points = calloc(n * MAX(w->n_axes, 1u), sizeof(*w->points));
	if (!w->points)
		return err_set(err, -ENOMEM, "out of memory");
	do {
		if (!is_excluded(w, row))
			memcpy(row_at(w, w->n_points++), row,
			       w->n_axes * sizeof(*row));
	} while (advance(w, row));
	return 0;
}

static int check_excludes(const struct workload *w, struct err *err)
{
	struct conf_node *const *items = w->excludes.items;
	int r = 0;

	for (size_t i = 0; r == 0 && i < w->excludes.n; i++) {
		r = workload_check_where(w, items[i], true, err);
		if (r == 0 && !items[i]->n)
			r = conf_node_error(items[i], w->path, err,
					    "this excludes all points");
	}
	return r;
}

int workload_make_points(struct workload *w, struct err *err)
{
	int r = check_excludes(w, err);

	if (r == 0)
		r = make_grid(w, err);
	if (r == 0 && !w->n_points)
		r = conf_node_error(conf_node_get(w->root, "exclude"), w->path,
				    err, "all points are excluded");
	return r;
}
