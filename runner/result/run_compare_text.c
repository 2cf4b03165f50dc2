/* SPDX-License-Identifier: MIT */
/* Prints a comparison as text. */
#include <string.h>

#include "common/util.h"
#include "runner/result/run_compare.h"
#include "runner/result/run_result.h"

static const char *text(const json_t *j, const char *key)
{
	const char *s = json_string_value(json_object_get(j, key));

	return s ? s : "";
}

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

static void print_row(const json_t *row, FILE *f)
{
	char at[60], a[RESULT_TEXT], b[RESULT_TEXT], change[RESULT_TEXT];
	char low[RESULT_TEXT], high[RESULT_TEXT], least[RESULT_TEXT];
	char range[3 * RESULT_TEXT], n[24];
	const json_t *p = json_object_get(row, "p_holm");
	const char *sign = strcmp(text(row, "scale"), "ratio") ? "+" : "x";

	labels(json_object_get(row, "axes"), at, sizeof(at));
	runs(n, sizeof(n), row);
	cell(a, sizeof(a), row, "median_a");
	cell(b, sizeof(b), row, "median_b");
	cell(change, sizeof(change), row, "change");
	cell(low, sizeof(low), row, "low");
	cell(high, sizeof(high), row, "high");
	cell(least, sizeof(least), row, "detectable");
	snprintf(range, sizeof(range), "%s to %s", low, high);
	fprintf(f, "%-14s %-28s %8s %10s %10s %s%9s %17s %s%9s",
		text(row, "metric"), at, n, a, b, sign, change, range, sign,
		least);
	if (json_is_number(p))
		fprintf(f, " %8.3g%s\n", json_number_value(p),
			json_is_true(json_object_get(row, "significant")) ? " *"
									  : "");
	else
		fprintf(f, " %8s\n", "-");
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
			text(one, "what"), a, b);
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

static void print_one(const json_t *comparison, FILE *f)
{
	const json_t *changes = json_object_get(comparison, "changes");
	json_t *row;
	size_t i, significant = 0, untested = 0;

	fprintf(f, "A  %s\nB  %s\n\n", text(comparison, "a"),
		text(comparison, "b"));
	fprintf(f, "%-14s %-28s %8s %10s %10s %10s %17s %10s %8s\n", "metric",
		"at", "runs", "A", "B", "change", "95 %", "could see", "p");
	json_array_foreach ((json_t *)changes, i, row) {
		print_row(row, f);
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

void compare_print(const json_t *comparison, FILE *f)
{
	const json_t *list = json_object_get(comparison, "workloads");
	json_t *one;
	size_t i;

	json_array_foreach ((json_t *)list, i, one) {
		fprintf(f, "%s%s\n", i ? "\n" : "", text(one, "workload"));
		print_one(one, f);
	}
	if (list)
		print_ends(comparison, f);
	else
		print_one(comparison, f);
	fputs("\nx: B/A, +: B-A, where a value is not positive. *: p below "
	      "0.05 "
	      "after Holm's correction\nover the points of a metric; Student's "
	      "t, of logarithms with x, by pairs of a seed where\nthe seeds "
	      "are "
	      "the same. could see: the smallest change that these runs, as "
	      "they vary,\nwould have shown.\n",
	      f);
}
