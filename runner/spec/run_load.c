/* SPDX-License-Identifier: MIT */
#include "runner/spec/run_workload.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/json.h"
#include "common/units.h"
#include "common/util.h"
#include "common/word.h"
#include "runner/spec/run_evidence.h"
#include "runner/spec/run_metric.h"

/* In an array of trees. */
#define BASE(key, program)                                             \
	{                                                              \
		key, CONF_TREE, (program) * sizeof(struct conf_node *) \
	}
static const struct conf_field base_fields[] = {
	BASE("fs", RUN_FS),	BASE("train", RUN_TRAIN),
	BASE("exec", RUN_EXEC), BASE("environment", RUN_ENV),
	BASE("gpud", RUN_GPUD), BASE("prepd", RUN_PREPD),
	BASE("s3", RUN_S3),	{ 0 },
};

static const struct conf_field rules_fields[] = {
	{ "au", CONF_CAPACITY,
	  offsetof(struct workload, rules.au) -
		  offsetof(struct workload, rules) },
	{ 0 },
};

static const struct conf_field mount_fields[] = {
	{ CONF_KEY(name, CONF_STRING, struct mount_spec) },
	{ CONF_KEY(dataset, CONF_TREE, struct mount_spec) },
	{ CONF_KEY(fs, CONF_TREE, struct mount_spec) },
	{ 0 },
};

static const struct conf_field job_fields[] = {
	{ CONF_KEY(name, CONF_STRING, struct job_spec) },
	{ CONF_KEY(mount, CONF_STRING, struct job_spec) },
	{ "start", CONF_DURATION, offsetof(struct job_spec, start_ns) },
	{ CONF_KEY(train, CONF_TREE, struct job_spec) },
	{ CONF_KEY(exec, CONF_TREE, struct job_spec) },
	{ CONF_KEY(environment, CONF_TREE, struct job_spec) },
	{ 0 },
};

static const struct conf_field plot_fields[] = {
	{ CONF_KEY(name, CONF_STRING, struct plot) },
	{ CONF_KEY(title, CONF_STRING, struct plot) },
	{ CONF_KEY(kind, CONF_STRING, struct plot) },
	{ CONF_KEY(x, CONF_STRING, struct plot), .required = true },
	{ CONF_KEY(y, CONF_STRING, struct plot), .required = true },
	{ CONF_KEY(series, CONF_STRING, struct plot) },
	{ CONF_KEY(x_label, CONF_STRING, struct plot) },
	{ CONF_KEY(y_label, CONF_STRING, struct plot) },
	{ CONF_KEY(series_label, CONF_STRING, struct plot) },
	{ CONF_KEY(where, CONF_TREE, struct plot) },
	{ 0 },
};

static const struct conf_field fields[] = {
	{ CONF_KEY(extends, CONF_STRING, struct workload) },
	{ CONF_KEY(name, CONF_STRING, struct workload), .required = true },
	{ CONF_KEY(question, CONF_STRING, struct workload), .required = true },
	{ CONF_KEY(figure, CONF_STRING, struct workload) },
	{ CONF_KEY(dataset, CONF_TREE, struct workload) },
	{ CONF_KEY(base, CONF_RECORD, struct workload), .fields = base_fields },
	{ CONF_KEY(mounts, CONF_MAP, struct workload), .fields = mount_fields,
	  .item_size = sizeof(struct mount_spec) },
	{ CONF_KEY(jobs, CONF_MAP, struct workload), .fields = job_fields,
	  .item_size = sizeof(struct job_spec) },
	{ CONF_KEY(warmup, CONF_UINT, struct workload), .max = 100 },
	{ "order", CONF_STRING, offsetof(struct workload, order_text) },
	{ CONF_KEY(noise, CONF_CAPACITY, struct workload) },
	{ CONF_KEY(independent, CONF_BOOL, struct workload) },
	{ "axes", CONF_TREE, offsetof(struct workload, axes_tree) },
	{ "exclude", CONF_LIST, offsetof(struct workload, excludes),
	  .item = CONF_TREE, .item_size = sizeof(struct conf_node *) },
	{ CONF_KEY(repetitions, CONF_UINT, struct workload), .min = 1,
	  .max = 1000 },
	{ CONF_KEY(time_scale, CONF_DOUBLE, struct workload), .min = 1e-6,
	  .max = 1000 },
	{ CONF_KEY(seed, CONF_UINT, struct workload) },
	{ "cell_timeout", CONF_DURATION,
	  offsetof(struct workload, cell_timeout_ns), .min = NS_PER_S,
	  .max = 24.0 * 3600 * NS_PER_S },
	{ CONF_KEY(metrics, CONF_MAP, struct workload), .fields = metric_fields,
	  .item_size = sizeof(struct metric), .check = metric_check },
	{ CONF_KEY(columns, CONF_LIST, struct workload), .item = CONF_STRING,
	  .item_size = sizeof(char *) },
	{ "plot", CONF_LIST, offsetof(struct workload, plots),
	  .item = CONF_RECORD, .fields = plot_fields,
	  .item_size = sizeof(struct plot) },
	{ CONF_KEY(rules, CONF_RECORD, struct workload),
	  .fields = rules_fields },
	{ "kind", CONF_STRING, offsetof(struct workload, kind_text) },
	{ CONF_KEY(fitted, CONF_TREE, struct workload) },
	{ CONF_KEY(null, CONF_TREE, struct workload) },
	{ "expect", CONF_LIST, offsetof(struct workload, expects),
	  .item = CONF_RECORD, .fields = expect_fields,
	  .item_size = sizeof(struct expect) },
	{ CONF_KEY(published, CONF_MAP, struct workload),
	  .fields = published_fields, .item_size = sizeof(struct published) },
	{ 0 },
};

/* --- checks ----------------------------------------------------------- */

static int check_name(const struct workload *w, struct err *err)
{
	const struct conf_node *node = conf_node_get(w->root, "name");

	return workload_is_name(w->name) ? 0
					 : conf_node_error(node, w->path, err,
							   WORKLOAD_NAME_RULE);
}

static const char *const order_names[] = { "random", "interleaved", "listed" };

const char *workload_order_name(const struct workload *w)
{
	return order_names[w->order];
}

static int check_order(struct workload *w, struct err *err)
{
	struct err unknown = { 0 };
	int i;

	if (w->noise.fraction < 0)
		return conf_node_error(conf_node_get(w->root, "noise"), w->path,
				       err, "noise is a share: 5%%");
	if (w->rules.au.fraction < 0)
		return conf_node_error(
			conf_node_get(conf_node_get(w->root, "rules"), "au"),
			w->path, err, "au is a share: 90%%");
	if (!w->order_text)
		return 0;
	i = WORD_FIND(order_names, "order", w->order_text, &unknown);
	if (i < 0)
		return conf_node_error(conf_node_get(w->root, "order"), w->path,
				       err, "%s", unknown.text);
	w->order = (enum workload_order)i;
	return 0;
}

static int check_null(const struct workload *w, struct err *err)
{
	const struct conf_node *node = conf_node_get(w->root, "null");

	if (!node)
		return 0;
	if (node->kind == CONF_KIND_MAPPING && node->n == 1)
		return workload_check_where(w, node, false, err);
	return conf_node_error(node, w->path, err,
			       "null is {AXIS: LABEL}: where the effect is "
			       "left out");
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

/* `node` is the plot, `key` its key that names an axis. */
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

/* Every axis is x, the series, or fixed, so that each position has one value.
 */
static int check_plot(const struct workload *w, const struct plot *p,
		      const struct conf_node *node, struct err *err)
{
	int r = check_axis_name(w, node, "x", err);

	if (r == 0)
		r = check_axis_name(w, node, "series", err);
	if (r == 0)
		r = workload_check_where(w, p->where, false, err);
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

		if (a->n_points > 1 && (int)i != workload_null_axis(w) &&
		    strcmp(a->name, p->x) &&
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

static int finish_workload(struct workload *w, struct err *err)
{
	int r = conf_decode(w->root, w->path, fields, w, err);

	if (r == 0)
		r = check_name(w, err);
	if (r == 0)
		r = check_order(w, err);
	if (r == 0)
		r = workload_expand_ranges(w, err);
	if (r == 0)
		r = workload_parse_axes(w, err);
	if (r == 0)
		r = check_null(w, err);
	if (r == 0)
		r = workload_make_points(w, err);
	if (r == 0)
		r = workload_check_jobs(w, err);
	if (r == 0)
		r = check_columns(w, err);
	if (r == 0)
		r = check_plots(w, err);
	if (r == 0)
		r = expect_check(w, err);
	return r == 0 ? evidence_check(w, err) : r;
}

static int init_workload(struct workload *w, const char *path)
{
	*w = (struct workload){ .path = strdup(path),
				.repetitions = 1,
				.time_scale = 1,
				.seed = 1,
				.noise = { .fraction = .05 },
				.rules.au = { .fraction = .9 },
				.cell_timeout_ns = 600 * NS_PER_S,
				.overrides = json_array() };
	return w->path && w->overrides ? 0 : -ENOMEM;
}

/* Does the axis set `key` at every point, for all mounts or jobs? */
static bool axis_decides(const struct axis *axis, const char *key)
{
	struct setting what;

	if (!workload_split_key(key, &what))
		return false;
	for (size_t i = 0; i < axis->n_points; i++) {
		const struct axis_point *p = &axis->points[i];
		bool found = false;

		for (size_t k = 0; k < p->n_settings; k++)
			found = found ||
				(p->settings[k].program == what.program &&
				 !p->settings[k].n_target &&
				 !strcmp(p->settings[k].key, what.key));
		if (!found)
			return false;
	}
	return true;
}

/* An override of the base that no cell would see. */
static int check_hidden(const struct workload *w, const char *text,
			const char *key, struct err *err)
{
	for (size_t a = 0; a < w->n_axes; a++)
		if (axis_decides(&w->axes[a], key))
			return err_set(err, -EINVAL,
				       "%s:1:1: axis '%s' sets this in every "
				       "cell: override axes.%s",
				       text, w->axes[a].name, w->axes[a].name);
	return 0;
}

/* `keys`: {text: key, as an axis would be called}. */
static int override(struct workload *w, char *const *overrides, json_t *keys,
		    struct err *err)
{
	int r = keys && w->overrides ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && overrides && overrides[i]; i++) {
		_cleanup_free_ char *key = NULL;

		r = tree_override(w->root, overrides[i], &w->names, &key, err);
		if (r == 0 &&
		    (json_array_append_new(w->overrides,
					   json_bytes(overrides[i])) < 0 ||
		     (key && json_object_set_new(keys, overrides[i],
						 json_string(key)) < 0)))
			r = -ENOMEM;
	}
	return r;
}

int workload_load(const char *path, char *const *overrides,
		  struct workload *ret, struct err *err)
{
	json_auto_t *keys = json_object();
	const char *text;
	json_t *key;
	int r = init_workload(ret, path);

	if (r == 0)
		r = conf_tree_load(path, &ret->root, err);
	if (r == 0)
		r = tree_extend(ret->root, path, &ret->names, err);
	if (r == 0)
		r = override(ret, overrides, keys, err);
	if (r == 0)
		r = finish_workload(ret, err);
	json_object_foreach (keys, text, key)
		if (r == 0)
			r = check_hidden(ret, text, json_string_value(key),
					 err);
	return r;
}

int workload_parse(const char *bytes, size_t n, const char *path,
		   struct workload *ret, struct err *err)
{
	int r = init_workload(ret, path);

	if (r == 0)
		r = conf_tree_parse(bytes, n, path, &ret->root, err);
	if (r == 0 && conf_node_get(ret->root, "extends"))
		r = conf_node_error(conf_node_get(ret->root, "extends"), path,
				    err, "only a file can extend another");
	return r == 0 ? finish_workload(ret, err) : r;
}

int workload_print_keys(FILE *f)
{
	struct workload w;
	int r = init_workload(&w, "");

	if (r == 0)
		conf_print_keys(fields, &w, f);
	workload_free(&w);
	return r;
}

void workload_free(struct workload *w)
{
	for (size_t i = 0; i < w->n_axes; i++) {
		for (size_t k = 0; k < w->axes[i].n_points; k++) {
			free(w->axes[i].points[k].settings);
			free(w->axes[i].points[k].made_label);
		}
		free(w->axes[i].points);
	}
	free(w->axes);
	free(w->points);
	expect_free(w);
	json_decref(w->profiles);
	json_decref(w->defaults);
	json_decref(w->files);
	json_decref(w->commands);
	free(w->hashes);
	json_decref(w->overrides);
	conf_free(fields, w);
	conf_node_free(w->root);
	tree_names_free(&w->names);
	free(w->path);
	*w = (struct workload){ 0 };
}
