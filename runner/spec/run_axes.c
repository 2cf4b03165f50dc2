/* SPDX-License-Identifier: MIT */
/* The axes of a workload: parses their YAML into settings per point. */
#include <errno.h>
#include <string.h>

#include "common/util.h"
#include "common/word.h"
#include "runner/spec/run_workload.h"

int workload_key_error(const struct workload *w, const struct conf_node *node,
		       struct err *err, const char *what)
{
	return err_set(err, -EINVAL, "%s:%u:%u: %s: %s",
		       conf_node_name(node, w->path), node->key_line,
		       node->key_column, node->key, what);
}

bool workload_is_reserved(enum run_program program, const char *key)
{
	static const char *const keys[] = {
		"time_scale", "seed", "data", "progress", "foreground", "socket"
	};
	static const char *const of_prepd[] = { "dispatcher", "listen",
						"advertise", "key", "drain" };
	static const char *const of_s3[] = { "listen", "keys", "anonymous",
					     "json" };

	if (program == RUN_DATA || program >= RUN_EXEC)
		return false;
	return WORD_FIND(keys, "", key, NULL) >= 0 ||
	       (program == RUN_PREPD &&
		WORD_FIND(of_prepd, "", key, NULL) >= 0) ||
	       (program == RUN_S3 && WORD_FIND(of_s3, "", key, NULL) >= 0);
}

/* Does a mount (fs, dataset) or job (others) of that name exist? */
static bool has_target(const struct workload *w, const struct setting *s)
{
	bool mount = s->program == RUN_FS || s->program == RUN_DATA;
	const struct mount_spec *m = w->mounts.items;
	const struct job_spec *j = w->jobs.items;
	size_t n = mount ? w->mounts.n : w->jobs.n;

	if (run_is_server(s->program))
		return w->base[s->program] && !s->n_target;
	if (s->program == RUN_FS && workload_is_store_only(w))
		return false;
	for (size_t i = 0; i < n; i++) {
		const char *name = mount ? m[i].name : j[i].name;

		if (util_is(s->target, s->n_target, name))
			return true;
	}
	return !s->n_target;
}

bool workload_split_key(const char *key, struct setting *ret)
{
	const char *at = key;

	*ret = (struct setting){ 0 };
	for (int once = 0; at && once < 2; once++) {
		for (enum run_program i = 0; i < RUN_PROGRAMS; i++) {
			size_t n = strcspn(at, ".");

			if (!util_is(at, n, run_program_word(i)) || !at[n] ||
			    !at[n + 1])
				continue;
			ret->program = i;
			ret->key = at + n + 1;
			ret->target = key;
			ret->n_target = at > key ? (size_t)(at - key) - 1 : 0;
			return true;
		}
		at = strchr(at, '.');
		at = at ? at + 1 : NULL;
	}
	at = strchr(key, '.');
	if (strcmp(at ? at + 1 : key, "dataset"))
		return false;
	*ret = (struct setting){ .program = RUN_DATA,
				 .key = WORKLOAD_WHOLE,
				 .target = key,
				 .n_target = at ? (size_t)(at - key) : 0 };
	return true;
}

bool workload_is_store_only(const struct workload *w)
{
	return w->base[RUN_S3] && !w->base[RUN_FS] && !w->mounts.n;
}

static const char *no_target(const struct workload *w, enum run_program program)
{
	switch (program) {
	case RUN_S3: return "base has no s3";
	case RUN_GPUD: return "base has no gpud";
	case RUN_PREPD: return "base has no prepd";
	case RUN_FS:
		return workload_is_store_only(w)
			       ? "base has s3 and no fs, so nothing is mounted"
			       : "no mount of that name";
	default: return "no mount or job of that name";
	}
}

/* The key at `node`. */
static int parse_setting(const struct workload *w, const struct conf_node *node,
			 const struct conf_node *value, struct setting *ret,
			 struct err *err)
{
	bool known = workload_split_key(node->key, ret);

	ret->value = value;
	ret->line = node->key_line;
	ret->column = node->key_column;
	if (!known)
		return workload_key_error(
			w, node, err,
			"a key is dataset, or starts with fs. train. dataset. "
			"gpud. prepd. s3. exec. or env., optionally after the "
			"name of a mount or job");
	if (!has_target(w, ret))
		return workload_key_error(w, node, err,
					  no_target(w, ret->program));
	if (workload_is_reserved(ret->program, ret->key))
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

static int check_twice(const struct workload *w, const struct axis *axis,
		       const struct conf_node *node, size_t i, struct err *err)
{
	for (size_t j = 0; j < i; j++)
		if (!strcmp(axis->points[j].label, axis->points[i].label))
			return conf_node_error(node, w->path, err, "'%s' twice",
					       axis->points[i].label);
	return 0;
}

/* zip: {KEY: [a, b], KEY: [c, d]}: point "a/c" sets both keys. */
static int parse_zip_point(const struct workload *w,
			   const struct conf_node *zip, size_t i,
			   struct axis_point *point, struct err *err)
{
	size_t n = 1;
	char *to;
	int r = 0;

	for (size_t k = 0; k < zip->n; k++)
		n += strlen(zip->items[k]->items[i]->value) + 1;
	point->made_label = to = calloc(1, n);
	point->label = to;
	point->settings = calloc(zip->n, sizeof(*point->settings));
	if (!to || !point->settings)
		return err_set(err, -ENOMEM, "out of memory");
	for (size_t k = 0; r == 0 && k < zip->n; k++) {
		const struct conf_node *value = zip->items[k]->items[i];

		to = stpcpy(k ? stpcpy(to, "/") : to, value->value);
		r = add_setting(w, zip->items[k], value, point, err);
	}
	return r;
}

static int check_zip(const struct workload *w, const struct conf_node *zip,
		     struct err *err)
{
	for (size_t k = 0; k < zip->n; k++) {
		const struct conf_node *list = zip->items[k];

		if (list->kind != CONF_KIND_SEQUENCE || !list->n ||
		    list->n != zip->items[0]->n)
			return conf_node_error(list, w->path, err,
					       "zip takes lists of one "
					       "length");
		for (size_t i = 0; i < list->n; i++)
			if (list->items[i]->kind != CONF_KIND_SCALAR)
				return conf_node_error(list->items[i], w->path,
						       err, "not a value");
	}
	return 0;
}

static int parse_axis(const struct workload *w, const struct conf_node *node,
		      struct axis *axis, struct err *err)
{
	const struct conf_node *zip = conf_node_get(node, "zip"), *list = node;
	int r = 0;

	axis->name = node->key;
	if (zip && zip->kind == CONF_KIND_MAPPING && zip->n && node->n == 1) {
		r = check_zip(w, zip, err);
		list = zip->items[0];
	} else if (node->kind != CONF_KIND_SEQUENCE || !node->n) {
		r = conf_node_error(node, w->path, err,
				    "axis '%s' must be a list of values, a "
				    "range {from: A, to: B}, or zip: {KEY: "
				    "LIST, ...}",
				    node->key);
	}
	if (r < 0)
		return r;
	axis->points = calloc(list->n, sizeof(*axis->points));
	if (!axis->points)
		return err_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; r == 0 && i < list->n; i++) {
		struct axis_point *point = &axis->points[i];

		axis->n_points = i + 1;
		r = list == node
			    ? parse_point(w, node, list->items[i], point, err)
			    : parse_zip_point(w, zip, i, point, err);
		if (r == 0)
			r = check_twice(w, axis, list->items[i], i, err);
	}
	return r;
}

static bool axis_sets(const struct axis *axis, const struct setting *s)
{
	for (size_t i = 0; i < axis->n_points; i++) {
		const struct axis_point *p = &axis->points[i];

		for (size_t k = 0; k < p->n_settings; k++)
			if (p->settings[k].program == s->program &&
			    !strcmp(p->settings[k].key, s->key) &&
			    p->settings[k].n_target == s->n_target &&
			    !strncmp(p->settings[k].target, s->target,
				     s->n_target))
				return true;
	}
	return false;
}

/* Is it the axis that leaves the effect out? */
static bool is_null(const struct workload *w, const struct axis *axis)
{
	return w->null && w->null->kind == CONF_KIND_MAPPING && w->null->n &&
	       !strcmp(w->null->items[0]->key, axis->name);
}

/* Two axes must not set the same key: one would hide the other. Where the
 * effect is left out, what causes it is meant to be hidden. */
static int check_overlap(const struct workload *w, const struct axis *axis,
			 const struct conf_node *node, struct err *err)
{
	if (is_null(w, axis))
		return 0;
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

	if (!tree)
		return 0;
	if (tree->kind != CONF_KIND_MAPPING)
		return conf_node_error(tree, w->path, err,
				       "axes must be a mapping");
	if (tree->n > WORKLOAD_MAX_AXES)
		return conf_node_error(tree, w->path, err, "more than %d axes",
				       WORKLOAD_MAX_AXES);
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
	}
	return 0;
}
