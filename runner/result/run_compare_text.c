/* SPDX-License-Identifier: MIT */
/* Prints a comparison as text. */
#include <string.h>

#include "common/json.h"
#include "common/text/columns.h"
#include "common/util.h"
#include "runner/result/run_compare.h"
#include "runner/result/run_result.h"

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

static void runs(char *buf, size_t n, const json_t *row)
{
	long a = (long)json_integer_value(json_object_get(row, "n_a"));
	long b = (long)json_integer_value(json_object_get(row, "n_b"));

	if (json_is_true(json_object_get(row, "paired")))
		snprintf(buf, n, "%ld pairs", MIN(a, b));
	else
		snprintf(buf, n, "%ld, %ld", a, b);
}

enum { METRIC, AT, RUNS, A, B, CHANGE, RANGE, SEES, P, N_COLUMNS };

static const char *const titles[] = {
	[METRIC] = "metric", [AT] = "at", [RUNS] = "runs",
	[A] = "A",	     [B] = "B",	  [CHANGE] = "change",
	[RANGE] = "95 %",    [P] = "p",	  [SEES] = "could see",
};

/* "x1.02", "+3"; "-": there is none */
static void signed_cell(char *buf, const json_t *row, const char *key)
{
	bool ratio = !strcmp(json_get_text(row, "scale"), "ratio");

	buf[0] = ratio ? 'x' : '+';
	cell(buf + json_is_number(json_object_get(row, key)), COLUMNS_TEXT - 1,
	     row, key);
}

static void fill_row(const struct columns *t, size_t i, const json_t *row)
{
	char low[RESULT_TEXT], high[RESULT_TEXT];
	const json_t *p = json_object_get(row, "p_holm");

	snprintf(columns_at(t, i, METRIC), COLUMNS_TEXT, "%s",
		 json_get_text(row, "metric"));
	labels(json_object_get(row, "axes"), columns_at(t, i, AT),
	       COLUMNS_TEXT);
	runs(columns_at(t, i, RUNS), COLUMNS_TEXT, row);
	cell(columns_at(t, i, A), COLUMNS_TEXT, row, "median_a");
	cell(columns_at(t, i, B), COLUMNS_TEXT, row, "median_b");
	signed_cell(columns_at(t, i, CHANGE), row, "change");
	cell(low, sizeof(low), row, "low");
	cell(high, sizeof(high), row, "high");
	signed_cell(columns_at(t, i, SEES), row, "detectable");
	snprintf(columns_at(t, i, RANGE), COLUMNS_TEXT, "%s to %s", low, high);
	if (json_is_number(p))
		snprintf(columns_at(t, i, P), COLUMNS_TEXT, "%.3g%s",
			 json_number_value(p),
			 json_is_true(json_object_get(row, "significant"))
				 ? " *"
				 : "");
	else
		snprintf(columns_at(t, i, P), COLUMNS_TEXT, "-");
}

static void print_changes(const json_t *changes, size_t width, FILE *f)
{
	struct columns t;
	json_t *row;
	size_t i;

	if (columns_init(&t, json_array_size(changes) + 1, N_COLUMNS) < 0)
		return;
	t.words = RUNS;
	for (i = 0; i < N_COLUMNS; i++)
		snprintf(columns_at(&t, 0, i), COLUMNS_TEXT, "%s", titles[i]);
	json_array_foreach ((json_t *)changes, i, row)
		fill_row(&t, i + 1, row);
	columns_print(&t, width, f);
	columns_fini(&t);
}

/* A value on one line, truncated. */
static void value(const json_t *v, char *buf, size_t n)
{
	_cleanup_free_ char *all =
		json_is_string(v) || !v
			? NULL
			: json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);
	const char *s = json_is_string(v) ? json_string_value(v) : all;

	if (!s || json_is_null(v))
		snprintf(buf, n, "-");
	else if (strlen(s) < n)
		snprintf(buf, n, "%s", s);
	else
		snprintf(buf, n, "%.*s...", (int)n - 4, s);
}

static void print_differs(const json_t *list, FILE *f)
{
	char a[200], b[200];
	json_t *one;
	size_t i;

	json_array_foreach ((json_t *)list, i, one) {
		value(json_object_get(one, "a"), a, sizeof(a));
		value(json_object_get(one, "b"), b, sizeof(b));
		fprintf(f, "%s  %s: %s -> %s\n",
			i ? "             " : "Differs also:",
			json_get_text(one, "what"), a, b);
	}
}

static void print_list(const char *what, const json_t *list, FILE *f)
{
	char label[80];
	json_t *v;
	size_t i;

	json_array_foreach ((json_t *)list, i, v) {
		if (json_is_string(v))
			snprintf(label, sizeof(label), "%s",
				 json_string_value(v));
		else
			labels(v, label, sizeof(label));
		fprintf(f, "%s%s", i ? "; " : what, label);
	}
	if (json_array_size(list))
		fputc('\n', f);
}

static void print_ends(const json_t *comparison, FILE *f)
{
	print_list("Only in A: ", json_object_get(comparison, "only_a"), f);
	print_list("Only in B: ", json_object_get(comparison, "only_b"), f);
}

static void print_one(const json_t *comparison, size_t width, FILE *f)
{
	const json_t *changes = json_object_get(comparison, "changes");
	json_t *row;
	size_t i, significant = 0, untested = 0;

	fprintf(f, "A  %s\nB  %s\n\n", json_get_text(comparison, "a"),
		json_get_text(comparison, "b"));
	print_changes(changes, width, f);
	json_array_foreach ((json_t *)changes, i, row) {
		untested += !json_is_number(json_object_get(row, "p"));
		significant +=
			json_is_true(json_object_get(row, "significant"));
	}
	fprintf(f, "\n%zu of %zu differ significantly\n", significant,
		json_array_size(changes));
	if (untested)
		fprintf(f,
			"%zu have too few runs to tell: it takes two on each "
			"side\n",
			untested);
	print_differs(json_object_get(comparison, "differs"), f);
	print_ends(comparison, f);
}

void compare_print(const void *ctx, size_t width, FILE *f)
{
	const json_t *comparison = ctx;
	const json_t *list = json_object_get(comparison, "workloads");
	json_t *one;
	size_t i;

	json_array_foreach ((json_t *)list, i, one) {
		fprintf(f, "%s%s\n", i ? "\n" : "",
			json_get_text(one, "workload"));
		print_one(one, width, f);
	}
	if (list)
		print_ends(comparison, f);
	else
		print_one(comparison, width, f);
	fputs("\nx: B/A, +: B-A, where a value is not positive. *: p below "
	      "0.05\nafter Holm's correction over the points of a metric; "
	      "Student's t, of\nlogarithms with x, by pairs of a seed where "
	      "the seeds are the same. could see:\nthe smallest change that "
	      "these runs, as they vary, would have shown.\n",
	      f);
}
