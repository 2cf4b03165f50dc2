/* SPDX-License-Identifier: MIT */
#include "workloads/run_workload.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/units.h"
#include "common/util.h"
#include "workloads/run_metric.h"

/* arbitrary: a mistake in the axes, not an experiment that anybody runs */
enum { MAX_POINTS = 100000 };

static const struct conf_field base_fields[] = {
	{ "fs", CONF_TREE,
	  offsetof(struct workload, base.fs) -
		  offsetof(struct workload, base) },
	{ "train", CONF_TREE,
	  offsetof(struct workload, base.train) -
		  offsetof(struct workload, base) },
	{ 0 },
};

static const struct conf_field plot_fields[] = {
	{ "name", CONF_STRING, offsetof(struct plot, name) },
	{ "title", CONF_STRING, offsetof(struct plot, title) },
	{ "kind", CONF_STRING, offsetof(struct plot, kind) },
	{ "x", CONF_STRING, offsetof(struct plot, x), .required = true },
	{ "y", CONF_STRING, offsetof(struct plot, y), .required = true },
	{ "series", CONF_STRING, offsetof(struct plot, series) },
	{ "x_label", CONF_STRING, offsetof(struct plot, x_label) },
	{ "y_label", CONF_STRING, offsetof(struct plot, y_label) },
	{ "where", CONF_TREE, offsetof(struct plot, where) },
	{ 0 },
};

static const struct conf_field fields[] = {
	{ "name", CONF_STRING, offsetof(struct workload, name),
	  .required = true },
	{ "question", CONF_STRING, offsetof(struct workload, question),
	  .required = true },
	{ "dataset", CONF_TREE, offsetof(struct workload, dataset),
	  .required = true },
	{ "base", CONF_RECORD, offsetof(struct workload, base),
	  .fields = base_fields },
	{ "axes", CONF_TREE, offsetof(struct workload, axes_tree) },
	{ "repetitions", CONF_UINT, offsetof(struct workload, repetitions),
	  .min = 1, .max = 1000 },
	{ "time_scale", CONF_DOUBLE, offsetof(struct workload, time_scale),
	  .min = 1e-6, .max = 1000 },
	{ "seed", CONF_UINT, offsetof(struct workload, seed) },
	{ "cell_timeout", CONF_DURATION,
	  offsetof(struct workload, cell_timeout_ns), .min = NS_PER_S,
	  .max = 24.0 * 3600 * NS_PER_S },
	{ "metrics", CONF_MAP, offsetof(struct workload, metrics),
	  .fields = metric_fields, .item_size = sizeof(struct metric),
	  .check = metric_check },
	{ "columns", CONF_LIST, offsetof(struct workload, columns),
	  .item = CONF_STRING, .item_size = sizeof(char *) },
	{ "plot", CONF_LIST, offsetof(struct workload, plots),
	  .item = CONF_RECORD, .fields = plot_fields,
	  .item_size = sizeof(struct plot) },
	{ 0 },
};

const char *run_program_name(enum run_program program)
{
	static const char *const names[] = { "gpemu-fs", "gpemu-train",
					     "gpemu-data" };

	return names[program];
}

/* --- axes ------------------------------------------------------------- */

static int key_error(const struct workload *w, const struct conf_node *node,
		     struct err *err, const char *what)
{
	return err_set(err, -EINVAL, "%s:%u:%u: %s: %s", w->path,
		       node->key_line, node->key_column, node->key, what);
}

/* Keys that gpemu-run itself gives to the programs. */
static bool is_reserved(const char *key)
{
	static const char *const keys[] = { "time_scale", "seed", "data",
					    "progress", "foreground" };

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (!strcmp(keys[i], key))
			return true;
	return false;
}

/* "fs.cache_policy" at `node` -> gpemu-fs, cache_policy. */
static int parse_setting(const struct workload *w, const struct conf_node *node,
			 const struct conf_node *value, struct setting *ret,
			 struct err *err)
{
	*ret = (struct setting){ .value = value,
				 .line = node->key_line,
				 .column = node->key_column };
	if (!strncmp(node->key, "fs.", 3)) {
		ret->program = RUN_FS;
		ret->key = node->key + 3;
	} else if (!strncmp(node->key, "train.", 6)) {
		ret->program = RUN_TRAIN;
		ret->key = node->key + 6;
	} else {
		return key_error(w, node, err,
				 "a key of a program starts with fs. or "
				 "train.");
	}
	if (is_reserved(ret->key))
		return key_error(w, node, err, "gpemu-run itself sets this");
	return 0;
}

static int add_setting(const struct workload *w, const struct conf_node *node,
		       const struct conf_node *value, struct axis_point *point,
		       struct err *err)
{
	struct setting *s = &point->settings[point->n_settings];
	int r = parse_setting(w, node, value, s, err);

	if (r == 0)
		point->n_settings++;
	return r;
}

/* A value of the key that names the axis, or a mapping with a label. */
static int parse_point(const struct workload *w, const struct conf_node *axis,
		       const struct conf_node *node, struct axis_point *point,
		       struct err *err)
{
	const struct conf_node *label = node;
	bool named = node->kind == CONF_KIND_MAPPING;
	int r = 0;

	if (named)
		label = conf_node_get(node, "label");
	if (!label || label->kind != CONF_KIND_SCALAR || !label->value[0])
		return conf_node_error(node, w->path, err,
				       "a point is a value, or a mapping with "
				       "a 'label' and keys such as "
				       "fs.cache_size");
	point->label = label->value;
	point->settings = calloc(node->n + 1, sizeof(*point->settings));
	if (!point->settings)
		return err_set(err, -ENOMEM, "out of memory");
	if (!named)
		return add_setting(w, axis, node, point, err);
	for (size_t i = 0; r == 0 && i < node->n; i++)
		if (node->items[i] != label)
			r = add_setting(w, node->items[i], node->items[i],
					point, err);
	return r;
}

static int parse_axis(const struct workload *w, const struct conf_node *node,
		      struct axis *axis, struct err *err)
{
	axis->name = node->key;
	if (node->kind != CONF_KIND_SEQUENCE || !node->n)
		return conf_node_error(node, w->path, err,
				       "axis '%s' must be a list of values",
				       node->key);
	axis->points = calloc(node->n, sizeof(*axis->points));
	if (!axis->points)
		return err_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < node->n; i++) {
		int r;

		axis->n_points = i + 1;
		r = parse_point(w, node, node->items[i], &axis->points[i], err);
		if (r < 0)
			return r;
		for (size_t j = 0; j < i; j++)
			if (!strcmp(axis->points[j].label,
				    axis->points[i].label))
				return conf_node_error(node->items[i], w->path,
						       err, "'%s' twice",
						       axis->points[i].label);
	}
	return 0;
}

static bool axis_sets(const struct axis *axis, const struct setting *s)
{
	for (size_t i = 0; i < axis->n_points; i++) {
		const struct axis_point *p = &axis->points[i];

		for (size_t k = 0; k < p->n_settings; k++)
			if (p->settings[k].program == s->program &&
			    !strcmp(p->settings[k].key, s->key))
				return true;
	}
	return false;
}

/* Two axes that set the same key would hide each other. */
static int check_overlap(const struct workload *w, const struct axis *axis,
			 const struct conf_node *node, struct err *err)
{
	for (const struct axis *a = w->axes; a < axis; a++)
		for (size_t i = 0; i < axis->n_points; i++)
			for (size_t k = 0; k < axis->points[i].n_settings; k++)
				if (axis_sets(a, &axis->points[i].settings[k]))
					return key_error(w, node, err,
							 "another axis sets "
							 "the same key");
	return 0;
}

static int parse_axes(struct workload *w, struct err *err)
{
	const struct conf_node *tree = w->axes_tree;

	w->n_points = 1;
	if (!tree)
		return 0;
	if (tree->kind != CONF_KIND_MAPPING)
		return conf_node_error(tree, w->path, err,
				       "axes must be a mapping");
	w->axes = calloc(tree->n ? tree->n : 1, sizeof(*w->axes));
	if (!w->axes)
		return err_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < tree->n; i++) {
		struct axis *axis = &w->axes[i];
		int r;

		w->n_axes = i + 1;
		r = parse_axis(w, tree->items[i], axis, err);
		if (r == 0)
			r = check_overlap(w, axis, tree->items[i], err);
		if (r < 0)
			return r;
		w->n_points *= axis->n_points;
		if (w->n_points > MAX_POINTS)
			return conf_node_error(tree, w->path, err,
					       "more than %d points",
					       MAX_POINTS);
	}
	return 0;
}

/* --- checks ----------------------------------------------------------- */

static int check_name(const struct workload *w, struct err *err)
{
	const struct conf_node *node = conf_node_get(w->root, "name");

	if (!w->name[0] || strspn(w->name, "abcdefghijklmnopqrstuvwxyz"
					   "0123456789-_") != strlen(w->name))
		return conf_node_error(node, w->path, err,
				       "name: a word of a-z 0-9 - _, it names "
				       "a folder");
	return 0;
}

static int check_base(const struct workload *w, const struct conf_node *base,
		      struct err *err)
{
	if (!base)
		return 0;
	if (base->kind != CONF_KIND_MAPPING)
		return conf_node_error(base, w->path, err,
				       "%s must be a mapping", base->key);
	for (size_t i = 0; i < base->n; i++)
		if (is_reserved(base->items[i]->key))
			return key_error(w, base->items[i], err,
					 "gpemu-run itself sets this");
	return 0;
}

static int check_dataset(const struct workload *w, struct err *err)
{
	const struct conf_node *d = w->dataset;
	const struct conf_node *dir = conf_node_get(d, "dir");

	if (d->kind != CONF_KIND_MAPPING || !d->n)
		return conf_node_error(d, w->path, err,
				       "dataset must be a mapping: a recipe "
				       "for gpemu-data make, or {dir: DIR}");
	if (dir && (d->n > 1 || dir->kind != CONF_KIND_SCALAR))
		return conf_node_error(dir, w->path, err,
				       "dir stands alone and names a folder");
	return 0;
}

static int check_columns(const struct workload *w, struct err *err)
{
	const struct conf_node *node = conf_node_get(w->root, "columns");
	char *const *names = w->columns.items;

	for (size_t i = 0; i < w->columns.n; i++)
		if (!metric_find(&w->metrics, names[i]))
			return conf_node_error(node->items[i], w->path, err,
					       "no metric '%s'", names[i]);
	return 0;
}

/* `node` is the plot; `key` the one of its keys that names an axis. */
static int check_axis_name(const struct workload *w,
			   const struct conf_node *node, const char *key,
			   struct err *err)
{
	const struct conf_node *value = conf_node_get(node, key);

	if (!value || workload_axis(w, value->value) >= 0)
		return 0;
	return conf_node_error(value, w->path, err, "no axis '%s'",
			       value->value);
}

static int check_where(const struct workload *w, const struct conf_node *where,
		       struct err *err)
{
	if (where && where->kind != CONF_KIND_MAPPING)
		return conf_node_error(where, w->path, err,
				       "where must be a mapping");
	for (size_t i = 0; where && i < where->n; i++) {
		const struct conf_node *item = where->items[i];
		int a = item->key ? workload_axis(w, item->key) : -ENOENT;
		bool found = false;

		if (a < 0)
			return conf_node_error(item, w->path, err,
					       "where: not an axis");
		for (size_t k = 0; k < w->axes[a].n_points; k++)
			found = found || (item->kind == CONF_KIND_SCALAR &&
					  !strcmp(w->axes[a].points[k].label,
						  item->value));
		if (!found)
			return conf_node_error(item, w->path, err,
					       "not a value of axis '%s'",
					       item->key);
	}
	return 0;
}

/* Every axis is x, the series, or fixed: a plot shows one value per place. */
static int check_plot(const struct workload *w, const struct plot *p,
		      const struct conf_node *node, struct err *err)
{
	int r = check_axis_name(w, node, "x", err);

	if (r == 0)
		r = check_axis_name(w, node, "series", err);
	if (r == 0)
		r = check_where(w, p->where, err);
	if (r < 0)
		return r;
	if (!metric_find(&w->metrics, p->y))
		return conf_node_error(conf_node_get(node, "y"), w->path, err,
				       "no metric '%s'", p->y);
	if (p->kind && strcmp(p->kind, "lines") && strcmp(p->kind, "bars"))
		return conf_node_error(conf_node_get(node, "kind"), w->path,
				       err, "kind is lines or bars");
	for (size_t i = 0; i < w->n_axes; i++) {
		const struct axis *a = &w->axes[i];

		if (a->n_points > 1 && strcmp(a->name, p->x) &&
		    (!p->series || strcmp(a->name, p->series)) &&
		    !(p->where && conf_node_get(p->where, a->name)))
			return conf_node_error(node, w->path, err,
					       "axis '%s' is neither x nor "
					       "series nor fixed by 'where'",
					       a->name);
	}
	return 0;
}

/* Without a name a plot is called "y-by-x"; two must not share their files. */
static int name_plot(struct workload *w, size_t i, const struct conf_node *node,
		     struct err *err)
{
	struct plot *p = (struct plot *)w->plots.items + i;

	if (!p->name && asprintf(&p->name, "%s-by-%s", p->y, p->x) < 0)
		return -ENOMEM;
	for (char *c = p->name; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("-_", *c))
			*c = '_';
	for (struct plot *q = w->plots.items; q < p; q++)
		if (!strcmp(q->name, p->name))
			return conf_node_error(node, w->path, err,
					       "a second plot called '%s': "
					       "give it a name",
					       p->name);
	return 0;
}

static int check_plots(struct workload *w, struct err *err)
{
	const struct conf_node *node = conf_node_get(w->root, "plot");
	const struct plot *plots = w->plots.items;
	int r = 0;

	for (size_t i = 0; r == 0 && i < w->plots.n; i++) {
		r = check_plot(w, &plots[i], node->items[i], err);
		if (r == 0)
			r = name_plot(w, i, node->items[i], err);
	}
	return r;
}

static int finish(struct workload *w, struct err *err)
{
	int r = conf_decode(w->root, w->path, fields, w, err);

	if (r == 0)
		r = check_name(w, err);
	if (r == 0)
		r = check_base(w, w->base.fs, err);
	if (r == 0)
		r = check_base(w, w->base.train, err);
	if (r == 0)
		r = check_dataset(w, err);
	if (r == 0)
		r = parse_axes(w, err);
	if (r == 0)
		r = check_columns(w, err);
	return r == 0 ? check_plots(w, err) : r;
}

static int init(struct workload *w, const char *path)
{
	*w = (struct workload){ .path = strdup(path),
				.repetitions = 1,
				.time_scale = 1,
				.seed = 1,
				.cell_timeout_ns = 600 * NS_PER_S };
	return w->path ? 0 : -ENOMEM;
}

int workload_load(const char *path, struct workload *ret, struct err *err)
{
	int r = init(ret, path);

	if (r == 0)
		r = conf_tree_load(path, &ret->root, err);
	return r == 0 ? finish(ret, err) : r;
}

int workload_parse(const char *bytes, size_t n, const char *path,
		   struct workload *ret, struct err *err)
{
	int r = init(ret, path);

	if (r == 0)
		r = conf_tree_parse(bytes, n, path, &ret->root, err);
	return r == 0 ? finish(ret, err) : r;
}

void workload_free(struct workload *w)
{
	for (size_t i = 0; i < w->n_axes; i++) {
		for (size_t k = 0; k < w->axes[i].n_points; k++)
			free(w->axes[i].points[k].settings);
		free(w->axes[i].points);
	}
	free(w->axes);
	conf_free(fields, w);
	conf_node_free(w->root);
	free(w->path);
	*w = (struct workload){ 0 };
}
