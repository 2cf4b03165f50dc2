/* SPDX-License-Identifier: MIT */
/* Points of the grid: their labels, neighbours and settings. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/units.h"
#include "common/json.h"
#include "common/util.h"
#include "workloads/run_workload.h"

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

const struct axis_point *workload_at(const struct workload *w, size_t point,
				     size_t axis)
{
	/* mixed radix, the last axis being the lowest digit */
	for (size_t i = w->n_axes - 1; i > axis; i--)
		point /= w->axes[i].n_points;
	return &w->axes[axis].points[point % w->axes[axis].n_points];
}

void workload_label(const struct workload *w, size_t point, char *buf, size_t n)
{
	size_t at = 0;

	snprintf(buf, n, "all");
	for (size_t i = 0; i < w->n_axes && at < n; i++)
		at += (size_t)snprintf(buf + at, n - at, "%s%s", i ? ", " : "",
				       workload_at(w, point, i)->label);
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
	size_t stride = 1;

	for (size_t i = w->n_axes - 1; i > axis; i--)
		stride *= w->axes[i].n_points;
	return point +
	       (value - point / stride % w->axes[axis].n_points) * stride;
}

static bool is_one_of(const struct conf_node *node, const char *label)
{
	if (node->kind == CONF_KIND_SCALAR)
		return !strcmp(node->value, label);
	for (size_t i = 0; i < node->n; i++)
		if (!strcmp(node->items[i]->value, label))
			return true;
	return false;
}

bool workload_matches(const struct workload *w, size_t point,
		      const struct conf_node *where)
{
	for (size_t i = 0; where && i < where->n; i++) {
		const struct conf_node *item = where->items[i];
		size_t axis = (size_t)workload_axis(w, item->key);

		if (!is_one_of(item, workload_at(w, point, axis)->label))
			return false;
	}
	return true;
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
				       "where must be a mapping");
	for (size_t i = 0; where && i < where->n; i++) {
		const struct conf_node *item = where->items[i];
		int a = workload_axis(w, item->key);

		if (a < 0)
			return conf_node_error(item, w->path, err,
					       "where: not an axis");
		if (!lists || item->kind != CONF_KIND_SEQUENCE)
			r = check_label(w, (size_t)a, item, err);
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

/* Is `name` ("fs.cache_size", "b.train.batch") this setting? */
static bool is_setting(const struct setting *s, const char *name)
{
	static const char *const prefixes[] = { "fs.", "train.", "dataset.",
						"exec.", "env." };
	const char *prefix = prefixes[s->program];

	if (s->n_target) {
		if (strncmp(name, s->target, s->n_target) ||
		    name[s->n_target] != '.')
			return false;
		name += s->n_target + 1;
	}
	return !strncmp(name, prefix, strlen(prefix)) &&
	       !strcmp(name + strlen(prefix), s->key);
}

static const struct setting *find_setting(const struct axis_point *p,
					  const char *name)
{
	for (size_t i = 0; i < p->n_settings; i++)
		if (is_setting(&p->settings[i], name))
			return &p->settings[i];
	return NULL;
}

bool workload_decides(const struct workload *w, size_t axis, const char *name)
{
	const struct axis *a = &w->axes[axis];

	if (workload_axis(w, name) >= 0)
		return workload_axis(w, name) == (int)axis;
	for (size_t i = 0; i < a->n_points; i++)
		if (find_setting(&a->points[i], name))
			return true;
	return false;
}

const char *workload_setting(const struct workload *w, size_t point,
			     const char *name)
{
	const struct conf_node *node = NULL;
	int axis = workload_axis(w, name);

	if (axis >= 0)
		return workload_at(w, point, (size_t)axis)->label;
	if (!strncmp(name, "fs.", 3) && w->base.fs)
		node = conf_node_get(w->base.fs, name + 3);
	else if (!strncmp(name, "train.", 6) && w->base.train)
		node = conf_node_get(w->base.train, name + 6);
	else if (!strncmp(name, "exec.", 5) && w->base.exec)
		node = conf_node_get(w->base.exec, name + 5);
	else if (!strncmp(name, "dataset.", 8))
		node = conf_node_get(w->dataset, name + 8);
	for (size_t i = 0; i < w->n_axes; i++) {
		const struct setting *s =
			find_setting(workload_at(w, point, i), name);

		node = s ? s->value : node;
	}
	return node && node->kind == CONF_KIND_SCALAR ? node->value : NULL;
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
