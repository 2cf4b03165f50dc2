/* SPDX-License-Identifier: MIT */
/* The axes of a workload: from their YAML to settings by point. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/util.h"
#include "workloads/run_workload.h"

/* arbitrary: a mistake in the axes, not an experiment that anybody runs */
enum { MAX_POINTS = 100000 };

int workload_key_error(const struct workload *w, const struct conf_node *node,
		       struct err *err, const char *what)
{
	return err_set(err, -EINVAL, "%s:%u:%u: %s: %s", w->path,
		       node->key_line, node->key_column, node->key, what);
}

/* Keys that gpemu-run itself gives to the programs. */
bool workload_is_reserved(const char *key)
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
		return workload_key_error(
			w, node, err,
			"a key of a program starts with fs. or "
			"train.");
	}
	if (workload_is_reserved(ret->key))
		return workload_key_error(w, node, err,
					  "gpemu-run itself sets this");
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
					return workload_key_error(
						w, node, err,
						"another axis sets "
						"the same key");
	return 0;
}

int workload_parse_axes(struct workload *w, struct err *err)
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
