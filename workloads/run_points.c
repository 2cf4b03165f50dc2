/* SPDX-License-Identifier: MIT */
/* From a workload's axes to its settings, points and cells. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "common/units.h"
#include "common/util.h"
#include "workloads/run_workload.h"

/* --- settings --------------------------------------------------------- */

static int check_one(const struct workload *w, const struct setting *s,
		     workload_check_fn check, void *ctx, struct err *err)
{
	struct err why = { 0 };
	int r = check(ctx, s, &why);

	if (r != -EINVAL)
		return r < 0 ? err_set(err, r, "%s", why.text) : 0;
	/* the key is what is wrong, or its value */
	if (strstr(why.text, "unknown key"))
		return err_set(err, r, "%s:%u:%u: %s: %s", w->path, s->line,
			       s->column, run_program_name(s->program),
			       why.text);
	return conf_node_error(s->value, w->path, err, "%s: %s",
			       run_program_name(s->program), why.text);
}

static int check_map(const struct workload *w, const struct conf_node *map,
		     enum run_program program, workload_check_fn check,
		     void *ctx, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && map && i < map->n; i++) {
		struct setting s = { .program = program,
				     .key = map->items[i]->key,
				     .value = map->items[i],
				     .line = map->items[i]->key_line,
				     .column = map->items[i]->key_column };

		r = check_one(w, &s, check, ctx, err);
	}
	return r;
}

int workload_check(const struct workload *w, workload_check_fn check, void *ctx,
		   struct err *err)
{
	int r = workload_dir(w)
			? 0
			: check_map(w, w->dataset, RUN_DATA, check, ctx, err);

	if (r == 0)
		r = check_map(w, w->base.fs, RUN_FS, check, ctx, err);
	if (r == 0)
		r = check_map(w, w->base.train, RUN_TRAIN, check, ctx, err);
	for (size_t i = 0; i < w->n_axes; i++) {
		for (size_t k = 0; k < w->axes[i].n_points; k++) {
			const struct axis_point *p = &w->axes[i].points[k];

			for (size_t s = 0; r == 0 && s < p->n_settings; s++)
				r = check_one(w, &p->settings[s], check, ctx,
					      err);
		}
	}
	return r;
}

json_t *workload_value(const struct conf_node *value)
{
	json_t *j;

	if (value->kind == CONF_KIND_SCALAR)
		return json_string(value->value);
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

json_t *workload_dataset(const struct workload *w)
{
	return workload_value(w->dataset);
}

const char *workload_dir(const struct workload *w)
{
	const struct conf_node *dir = conf_node_get(w->dataset, "dir");

	return dir ? dir->value : NULL;
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

size_t workload_n_cells(const struct workload *w)
{
	return w->n_points * w->repetitions;
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

/* "fs.cache_size" is setting `s`. */
static bool is_setting(const struct setting *s, const char *name)
{
	size_t n = strcspn(name, ".");

	return name[n] && !strcmp(name + n + 1, s->key) &&
	       !strncmp(name, s->program == RUN_FS ? "fs" : "train",
			MAX(n, 2u));
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

/* --- cells ------------------------------------------------------------ */

static int overlay(const struct workload *w, struct cell *cell)
{
	for (size_t i = 0; i < w->n_axes; i++) {
		const struct axis_point *p = workload_at(w, cell->point, i);

		for (size_t k = 0; k < p->n_settings; k++) {
			const struct setting *s = &p->settings[k];
			json_t *to = s->program == RUN_FS ? cell->fs
							  : cell->train;

			if (json_object_set_new(to, s->key,
						workload_value(s->value)) < 0)
				return -ENOMEM;
		}
	}
	return 0;
}

/* What decides the result of a run, and nothing else. */
static int hash_cell(const struct workload *w, bool mounted, struct cell *cell)
{
	json_auto_t *j = json_pack("{s:o?, s:O?, s:O, s:f, s:I}", "dataset",
				   workload_dataset(w), "fs",
				   mounted ? cell->fs : NULL, "train",
				   cell->train, "time_scale", w->time_scale,
				   "seed", (json_int_t)cell->seed);
	_cleanup_free_ char *text =
		j ? json_dumps(j, JSON_COMPACT | JSON_SORT_KEYS) : NULL;

	if (!text)
		return -ENOMEM;
	cell->hash = XXH3_64bits(text, strlen(text));
	return 0;
}

/* "lru-35p-async-r1-9f3a01c2" */
static void name_cell(const struct workload *w, struct cell *cell)
{
	char label[90]; /* leaves room for the rest in a 128-byte id */
	char *to = label;

	workload_label(w, cell->point, label, sizeof(label));
	for (const char *c = label; *c; c++) {
		if (*c == ' ')
			continue;
		*to++ = *c == ',' ? '-' : *c == '%' ? 'p' : *c;
		if (!isalnum((unsigned char)to[-1]) && to[-1] != '-')
			to[-1] = '_';
	}
	*to = 0;
	snprintf(cell->id, sizeof(cell->id), "%s-r%zu-%08x", label,
		 cell->repetition + 1, (unsigned)(cell->hash & UINT32_MAX));
}

int workload_cell(const struct workload *w, size_t index, bool mounted,
		  struct cell *ret)
{
	int r;

	*ret = (struct cell){ .point = index % w->n_points,
			      .repetition = index / w->n_points };
	ret->seed = w->seed + ret->repetition;
	ret->fs = w->base.fs ? workload_value(w->base.fs) : json_object();
	ret->train = w->base.train ? workload_value(w->base.train)
				   : json_object();
	r = ret->fs && ret->train ? overlay(w, ret) : -ENOMEM;
	if (r == 0)
		r = hash_cell(w, mounted, ret);
	if (r == 0)
		name_cell(w, ret);
	else
		cell_free(ret);
	return r;
}

void cell_free(struct cell *cell)
{
	json_decref(cell->fs);
	json_decref(cell->train);
	cell->fs = cell->train = NULL;
}
