/* SPDX-License-Identifier: MIT */
#include "workloads/run_compare.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "common/json.h"
#include "common/util.h"
#include "workloads/run_result.h"
#include "workloads/run_stats.h"

/* arbitrary: any fixed one gives the same intervals each time */
enum { SEED = 1 };

static int load(const char *path, json_t **ret, struct err *err)
{
	_cleanup_free_ char *file = NULL;
	struct stat st;
	int code;

	if (asprintf(&file, "%s%s", path,
		     stat(path, &st) == 0 && S_ISDIR(st.st_mode)
			     ? "/summary.json"
			     : "") < 0)
		return -ENOMEM;
	code = json_read(file, ret, err);
	if (code < 0)
		return code;
	if (!json_is_array(json_object_get(*ret, "cells")))
		return err_set(err, -EINVAL, "%s: not a summary of gpemu-run",
			       file);
	return 0;
}

/* The point of `summary` with these labels, or NULL. */
static json_t *find_point(const json_t *summary, const json_t *axes)
{
	json_t *point;
	size_t i;

	json_array_foreach (json_object_get(summary, "cells"), i, point)
		if (json_equal(json_object_get(point, "axes"), axes))
			return point;
	return NULL;
}

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

static json_t *number(double v)
{
	return isfinite(v) ? json_real(v) : json_null();
}

static json_t *change(const json_t *axes, const char *name, const json_t *a,
		      const json_t *b)
{
	struct sample x = sample_of(a), y = sample_of(b);
	const char *unit = json_string_value(json_object_get(a, "unit"));
	double mx = json_number_value(json_object_get(a, "median"));
	double my = json_number_value(json_object_get(b, "median"));
	double low = NAN, high = NAN, p = NAN;
	json_t *j;

	if (x.v && y.v) {
		stats_ratio_interval(x.v, x.n, y.v, y.n, SEED, &low, &high);
		p = stats_mann_whitney(x.v, x.n, y.v, y.n);
	}
	j = json_pack("{s:O, s:s, s:s, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o}",
		      "axes", axes, "metric", name, "unit", unit ? unit : "",
		      "n_a", (json_int_t)x.n, "n_b", (json_int_t)y.n,
		      "median_a", number(mx), "median_b", number(my), "ratio",
		      number(my / mx), "ratio_low", number(low), "ratio_high",
		      number(high), "p", number(p));
	free(x.v);
	free(y.v);
	return j;
}

static void add_point(json_t *changes, const json_t *a, const json_t *b)
{
	json_t *m, *n;
	const char *name;

	json_object_foreach (json_object_get(a, "metrics"), name, m) {
		n = json_object_get(json_object_get(b, "metrics"), name);
		if (json_is_object(m) && json_is_object(n))
			json_array_append_new(changes,
					      change(json_object_get(a, "axes"),
						     name, m, n));
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
					    json_boolean(p[k] < .05));
			k++;
		}
}

/* What else the two do not share. */
static json_t *differences(const json_t *a, const json_t *b)
{
	static const char *const keys[] = { "gpemu",  "workload", "profiles",
					    "host",   "seed",	  "time_scale",
					    "mounted" };
	json_t *j = json_array();

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (!json_equal(json_object_get(a, keys[i]),
				json_object_get(b, keys[i])))
			json_array_append_new(j, json_string(keys[i]));
	return j;
}

static json_t *only_in(const json_t *a, const json_t *b)
{
	json_t *j = json_array(), *point;
	size_t i;

	json_array_foreach (json_object_get(a, "cells"), i, point)
		if (!find_point(b, json_object_get(point, "axes")))
			json_array_append(j, json_object_get(point, "axes"));
	return j;
}

int compare_folders(const char *a, const char *b, json_t **ret, struct err *err)
{
	json_auto_t *x = NULL, *y = NULL;
	json_t *changes, *point;
	size_t i;
	int code = load(a, &x, err);

	if (code == 0)
		code = load(b, &y, err);
	if (code < 0)
		return code;
	changes = json_array();
	json_array_foreach (json_object_get(x, "cells"), i, point) {
		const json_t *other =
			find_point(y, json_object_get(point, "axes"));

		if (other)
			add_point(changes, point, other);
	}
	for (i = 0; i < json_array_size(changes); i++)
		correct(changes, i);
	*ret = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "a", json_bytes(a),
			 "b", json_bytes(b), "differs", differences(x, y),
			 "only_a", only_in(x, y), "only_b", only_in(y, x),
			 "changes", changes);
	return *ret ? 0 : -ENOMEM;
}

/* --- table ------------------------------------------------------------ */

static void labels(const json_t *axes, char *buf, size_t n)
{
	json_t *v;
	const char *key;
	size_t at = 0;

	snprintf(buf, n, "all");
	json_object_foreach ((json_t *)axes, key, v)
		if (at < n)
			at += (size_t)snprintf(buf + at, n - at, "%s%s",
					       at ? ", " : "",
					       json_string_value(v));
}

static void cell(char *buf, size_t n, const json_t *row, const char *key)
{
	const json_t *v = json_object_get(row, key);

	if (json_is_number(v))
		result_number(buf, n, json_number_value(v));
	else
		snprintf(buf, n, "-");
}

static void print_row(const json_t *row, FILE *f)
{
	char at[60], a[24], b[24], ratio[24], low[24], high[24], range[60];
	const json_t *p = json_object_get(row, "p_holm");

	labels(json_object_get(row, "axes"), at, sizeof(at));
	cell(a, sizeof(a), row, "median_a");
	cell(b, sizeof(b), row, "median_b");
	cell(ratio, sizeof(ratio), row, "ratio");
	cell(low, sizeof(low), row, "ratio_low");
	cell(high, sizeof(high), row, "ratio_high");
	snprintf(range, sizeof(range), "%s-%s", low, high);
	fprintf(f, "%-14s %-28s %10s %10s %7s %15s",
		json_string_value(json_object_get(row, "metric")), at, a, b,
		ratio, range);
	if (json_is_number(p))
		fprintf(f, " %7.3g%s\n", json_number_value(p),
			json_is_true(json_object_get(row, "significant")) ? " *"
									  : "");
	else
		fprintf(f, " %7s\n", "-");
}

static void print_list(const char *what, const json_t *list, FILE *f)
{
	char text[80];
	json_t *v;
	size_t i;

	json_array_foreach ((json_t *)list, i, v) {
		if (json_is_string(v))
			snprintf(text, sizeof(text), "%s",
				 json_string_value(v));
		else
			labels(v, text, sizeof(text));
		fprintf(f, "%s%s", i ? "; " : what, text);
	}
	if (json_array_size(list))
		fputc('\n', f);
}

void compare_print(const json_t *comparison, const char *metric, FILE *f)
{
	json_t *row;
	size_t i, n = 0, significant = 0;

	fprintf(f, "A  %s\nB  %s\n\n",
		json_string_value(json_object_get(comparison, "a")),
		json_string_value(json_object_get(comparison, "b")));
	fprintf(f, "%-14s %-28s %10s %10s %7s %15s %7s\n", "metric", "at", "A",
		"B", "B/A", "95 %", "p");
	json_array_foreach (json_object_get(comparison, "changes"), i, row) {
		if (metric &&
		    strcmp(metric,
			   json_string_value(json_object_get(row, "metric"))))
			continue;
		print_row(row, f);
		n++;
		significant +=
			json_is_true(json_object_get(row, "significant"));
	}
	fprintf(f,
		"\n%zu of %zu differ significantly (*: Mann-Whitney, p below "
		"0.05 after Holm's correction over the points of a metric)\n",
		significant, n);
	print_list("Differs also: ", json_object_get(comparison, "differs"), f);
	print_list("Only in A: ", json_object_get(comparison, "only_a"), f);
	print_list("Only in B: ", json_object_get(comparison, "only_b"), f);
}
