/* SPDX-License-Identifier: MIT */
#include "runner/result/run_compare.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "common/json.h"
#include "common/util.h"
#include "runner/spec/run_stats.h"

static const double ALPHA = .05;

static int load(const char *path, json_t **ret, struct err *err)
{
	struct stat st;
	_cleanup_free_ char *file = stat(path, &st) == 0 && S_ISDIR(st.st_mode)
					    ? util_join(path, "summary.json")
					    : strdup(path);
	int code = file ? json_read(file, ret, err) : -ENOMEM;

	if (code < 0)
		return code;
	if (!json_is_array(json_object_get(*ret, "cells")) &&
	    !json_is_array(json_object_get(*ret, "workloads")))
		return err_set(err, -EINVAL, "%s: not a summary of gpemu-run",
			       file);
	return 0;
}

/* The element of a list whose member `key` is `wanted`, or NULL. */
static json_t *lookup(const json_t *list, const char *key, const json_t *wanted)
{
	json_t *one;
	size_t i;

	json_array_foreach ((json_t *)list, i, one)
		if (json_equal(json_object_get(one, key), wanted))
			return one;
	return NULL;
}

/* The `key` of the elements of one list that the other lacks. */
static json_t *only_in(const json_t *list, const json_t *other, const char *key)
{
	json_t *j = json_array(), *one;
	size_t i;

	json_array_foreach ((json_t *)list, i, one)
		if (!lookup(other, key, json_object_get(one, key)))
			json_array_append(j, json_object_get(one, key));
	return j;
}

/* --- changes ---------------------------------------------------------- */

struct sample {
	double *v;
	size_t n;
};

static struct sample sample_of(const json_t *metric)
{
	const json_t *values = json_object_get(metric, "values");
	struct sample s = { .v = calloc(json_array_size(values) + 1,
					sizeof(double)) };

	for (size_t i = 0; s.v && i < json_array_size(values); i++)
		s.v[s.n++] = json_number_value(json_array_get(values, i));
	return s;
}

static size_t place_of(const json_t *list, const json_t *v)
{
	size_t i = 0;

	while (i < json_array_size(list) &&
	       !json_equal(json_array_get(list, i), v))
		i++;
	return i;
}

/*
 * Align values of the same seed. Returns false without moving anything if the
 * smaller sample has seeds that the other lacks, or there are fewer than two
 * pairs.
 */
static bool pair(const json_t *a, const json_t *b, struct sample *x,
		 struct sample *y)
{
	const json_t *seeds_a = json_object_get(a, "seeds");
	const json_t *seeds_b = json_object_get(b, "seeds");
	_cleanup_free_ double *moved = calloc(x->n + 1, sizeof(*moved));
	size_t n = 0;

	if (!moved || json_array_size(seeds_a) != x->n ||
	    json_array_size(seeds_b) != y->n)
		return false;
	for (size_t i = 0; i < x->n; i++)
		n += place_of(seeds_b, json_array_get(seeds_a, i)) < y->n;
	if (n < 2 || n < MIN(x->n, y->n))
		return false;
	n = 0;
	for (size_t i = 0; i < x->n; i++) {
		size_t k = place_of(seeds_b, json_array_get(seeds_a, i));

		if (k == y->n)
			continue;
		moved[n] = y->v[k];
		x->v[n++] = x->v[i];
	}
	memcpy(y->v, moved, n * sizeof(*moved));
	x->n = y->n = n;
	return true;
}

static json_t *number(double v)
{
	return isfinite(v) ? json_real(v) : json_null();
}

static json_t *median(const json_t *metric)
{
	json_t *v = json_object_get(metric, "median");

	return v ? json_incref(v) : json_null();
}

static json_t *change(const json_t *axes, const char *name, const json_t *a,
		      const json_t *b, size_t n_tests)
{
	struct sample x = sample_of(a), y = sample_of(b);
	const char *unit = json_get_text(json_is_object(a) ? a : b, "unit");
	json_int_t n_a = (json_int_t)x.n, n_b = (json_int_t)y.n;
	struct run_change c = { 0 };
	bool paired = false;
	json_t *j = NULL;

	if (x.v && y.v) {
		paired = pair(a, b, &x, &y);
		c = stats_change(x.v, x.n, y.v, y.n, paired);
		j = json_pack(
			"{s:O, s:s, s:s, s:I, s:I, s:b, s:o, s:o, s:s, "
			"s:o, s:o, s:o, s:o, s:o}",
			"axes", axes, "metric", name, "unit", unit, "n_a", n_a,
			"n_b", n_b, "paired", paired, "median_a", median(a),
			"median_b", median(b), "scale",
			c.ratio ? "ratio" : "difference", "change",
			number(c.value), "low", number(c.low), "high",
			number(c.high), "detectable",
			number(stats_detectable(&c, ALPHA / (double)n_tests)),
			"p", number(c.p));
	}
	free(x.v);
	free(y.v);
	return j;
}

static size_t n_values(const json_t *point, const char *metric)
{
	return json_array_size(json_object_get(
		json_object_get(json_object_get(point, "metrics"), metric),
		"values"));
}

/* The number of points of `a` with a test of the metric. */
static size_t n_tests(const json_t *a, const json_t *b, const char *metric)
{
	json_t *point;
	size_t i, n = 0;

	json_array_foreach (json_object_get(a, "cells"), i, point) {
		const json_t *other = lookup(json_object_get(b, "cells"),
					     "axes",
					     json_object_get(point, "axes"));

		n += n_values(point, metric) > 1 && n_values(other, metric) > 1;
	}
	return MAX(n, 1u);
}

/* All metrics that either side has at a common point. */
static void add_point(json_t *changes, const json_t *x, const json_t *y,
		      const json_t *a, const json_t *b, const char *metric)
{
	json_auto_t *all =
		json_copy(json_object_get(a, "metrics")); /* keeps its order */
	const char *name;
	json_t *m, *n;

	json_object_update_missing(all, json_object_get(b, "metrics"));
	json_object_foreach (all, name, m) {
		m = json_object_get(json_object_get(a, "metrics"), name);
		n = json_object_get(json_object_get(b, "metrics"), name);
		if ((metric && strcmp(metric, name) != 0) ||
		    (!json_is_object(m) && !json_is_object(n)))
			continue;
		json_array_append_new(changes,
				      change(json_object_get(a, "axes"), name,
					     m, n, n_tests(x, y, name)));
	}
}

static bool is_of(const json_t *change, const json_t *like)
{
	return json_equal(json_object_get(change, "metric"),
			  json_object_get(like, "metric"));
}

/* Holm's correction over the points of the metric of changes[first]. */
static void correct(json_t *changes, size_t first)
{
	size_t n = json_array_size(changes), k = 0;
	_cleanup_free_ double *p = calloc(n, sizeof(*p));
	const json_t *like = json_array_get(changes, first);
	json_t *c;
	size_t i;

	if (!p || json_object_get(like, "p_holm"))
		return;
	json_array_foreach (changes, i, c)
		if (is_of(c, like)) {
			const json_t *v = json_object_get(c, "p");

			p[k++] = v && json_is_number(v) ? json_number_value(v)
							: NAN;
		}
	stats_holm(p, k);
	k = 0;
	json_array_foreach (changes, i, c)
		if (is_of(c, like)) {
			json_object_set_new(c, "p_holm", number(p[k]));
			json_object_set_new(c, "significant",
					    json_boolean(p[k] < ALPHA));
			k++;
		}
}

/* --- what else differs ------------------------------------------------ */

void compare_members(json_t *to, const char *what, json_t *a, json_t *b)
{
	json_auto_t *all = NULL;
	const char *key;
	json_t *v;

	if (json_equal(a, b))
		return;
	if (!json_is_object(a) || !json_is_object(b)) {
		json_array_append_new(
			to, json_pack("{s:s, s:o, s:o}", "what", what, "a",
				      a ? json_incref(a) : json_null(), "b",
				      b ? json_incref(b) : json_null()));
		return;
	}
	all = json_copy(a);
	json_object_update_missing(all, b);
	json_object_foreach (all, key, v) {
		_cleanup_free_ char *name =
			util_text("%s%s%s", what, what[0] ? "." : "", key);

		if (name)
			compare_members(to, name, json_object_get(a, key),
					json_object_get(b, key));
	}
}

json_t *compare_hashes(const json_t *files)
{
	json_t *j = json_object(), *one;
	const char *name;

	json_object_foreach ((json_t *)files, name, one)
		json_object_set(j, name, json_object_get(one, "hash"));
	return j;
}

/* {gpemu: [VALUE, ...]}: the number of runs of each does not matter. */
static json_t *values_of(const json_t *runs)
{
	json_t *j = json_object(), *values, *n;
	const char *name, *value;

	json_object_foreach ((json_t *)runs, name, values) {
		json_t *list = json_array();

		json_object_foreach (values, value, n)
			json_array_append_new(list, json_string(value));
		json_object_set_new(j, name, list);
	}
	return j;
}

/* The members of a summary that affect its numbers. */
static json_t *about(const json_t *summary)
{
	static const char *const keys[] = { "workload", "seed", "time_scale",
					    "mounted", "repetitions" };
	json_t *j = json_object();

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		json_object_set(j, keys[i], json_object_get(summary, keys[i]));
	json_object_update(j, json_object_get(summary, "setup"));
	json_object_set_new(
		j, "profiles",
		compare_hashes(json_object_get(summary, "profiles")));
	json_object_set(j, "files", json_object_get(summary, "files"));
	json_object_set_new(j, "runs",
			    values_of(json_object_get(summary, "runs")));
	return j;
}

/* --- all -------------------------------------------------------------- */

static json_t *compare_one(const char *a, const char *b, const json_t *x,
			   const json_t *y, const char *metric)
{
	const json_t *cells = json_object_get(x, "cells");
	const json_t *others = json_object_get(y, "cells");
	json_auto_t *about_a = about(x), *about_b = about(y);
	json_t *changes = json_array(), *differs = json_array(), *point;
	size_t i;

	json_array_foreach ((json_t *)cells, i, point) {
		const json_t *other =
			lookup(others, "axes", json_object_get(point, "axes"));

		if (other)
			add_point(changes, x, y, point, other, metric);
	}
	for (i = 0; i < json_array_size(changes); i++)
		correct(changes, i);
	compare_members(differs, "", about_a, about_b);
	return json_pack("{s:o, s:o, s:s, s:o, s:o, s:o, s:o}", "a",
			 json_bytes(a), "b", json_bytes(b), "workload",
			 json_get_text(x, "workload"), "differs", differs,
			 "only_a", only_in(cells, others, "axes"), "only_b",
			 only_in(others, cells, "axes"), "changes", changes);
}

static json_t *compare_lists(const char *a, const char *b, const json_t *x,
			     const json_t *y, const char *metric)
{
	const json_t *list = json_object_get(x, "workloads");
	const json_t *others = json_object_get(y, "workloads");
	json_t *all = json_array(), *one;
	size_t i;

	json_array_foreach ((json_t *)list, i, one) {
		const json_t *other = lookup(others, "workload",
					     json_object_get(one, "workload"));

		if (other)
			json_array_append_new(
				all,
				compare_one(json_get_text(one, "folder"),
					    json_get_text(other, "folder"),
					    json_object_get(one, "summary"),
					    json_object_get(other, "summary"),
					    metric));
	}
	return json_pack("{s:o, s:o, s:o, s:o, s:o}", "a", json_bytes(a), "b",
			 json_bytes(b), "workloads", all, "only_a",
			 only_in(list, others, "workload"), "only_b",
			 only_in(others, list, "workload"));
}

static size_t n_changes(const json_t *comparison)
{
	size_t n = json_array_size(json_object_get(comparison, "changes")), i;
	json_t *one;

	json_array_foreach (json_object_get(comparison, "workloads"), i, one)
		n += n_changes(one);
	return n;
}

/* Add to `list` the names of the metrics that a summary has at any point. */
static void list_metrics(const json_t *summary, json_t *seen,
			 char list[ERR_LIST])
{
	json_t *one, *m;
	const char *name;
	size_t i;

	json_array_foreach (json_object_get(summary, "workloads"), i, one)
		list_metrics(json_object_get(one, "summary"), seen, list);
	json_array_foreach (json_object_get(summary, "cells"), i, one)
		json_object_foreach (json_object_get(one, "metrics"), name, m) {
			if (!json_is_object(m) || json_object_get(seen, name))
				continue;
			json_object_set_new(seen, name, json_true());
			err_list(list, name);
		}
}

/* Nothing was compared: was the metric missing? */
static int refuse(const json_t *x, const json_t *y, const char *metric,
		  struct err *err)
{
	json_auto_t *seen = json_object();
	char list[ERR_LIST] = "";

	list_metrics(x, seen, list);
	list_metrics(y, seen, list);
	if (metric && !json_object_get(seen, metric))
		return err_set(err, -EINVAL, "no metric '%s'; there are %s",
			       metric, list);
	return err_set(err, -EINVAL, "the two have no point in common");
}

int compare_folders(const char *a, const char *b, const char *metric,
		    json_t **ret, struct err *err)
{
	json_auto_t *x = NULL, *y = NULL;
	bool list;
	int code = load(a, &x, err);

	if (code == 0)
		code = load(b, &y, err);
	if (code < 0)
		return code;
	list = json_object_get(x, "workloads") != NULL;
	if (list != (json_object_get(y, "workloads") != NULL))
		return err_set(err, -EINVAL,
			       "%s is of a list of workloads, %s of a single "
			       "workload; compare two of a kind",
			       list ? a : b, list ? b : a);
	*ret = (list ? compare_lists : compare_one)(a, b, x, y, metric);
	if (!*ret)
		return -ENOMEM;
	return n_changes(*ret) ? 0 : refuse(x, y, metric, err);
}
