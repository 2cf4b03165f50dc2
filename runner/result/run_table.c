/* SPDX-License-Identifier: MIT */
/*
 * The table: one row per point, one column per axis or metric, aligned; then
 * which parts are real and which emulated.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/plugin.h"
#include "common/text/columns.h"
#include "common/util.h"
#include "runner/result/run_origins.h"
#include "runner/result/run_result.h"

void result_digits(char *buf, size_t n, double v, int digits)
{
	int mag = isfinite(v) && v != 0 ? (int)floor(log10(fabs(v))) : 0;

	if (v == 0 || !isfinite(v))
		snprintf(buf, n, "%g", v);
	else if (mag < -6 || mag >= 15)
		snprintf(buf, n, "%.*e", digits - 1, v);
	else
		/* below 1 the leading zero counts as a digit */
		snprintf(buf, n, "%.*f", MAX(0, digits - 1 - mag - (mag < 0)),
			 v);
}

void result_number(char *buf, size_t n, double v)
{
	result_digits(buf, n, v, 4);
}

void result_exact(char *buf, size_t n, double v)
{
	for (int digits = 9; digits <= 17; digits++) {
		snprintf(buf, n, "%.*g", digits, v);
		if (strtod(buf, NULL) == v)
			return;
	}
}

/*
 * Without a mount, gpemu-fs options have no effect: cells that differ in them
 * alone have one key. Returns the keys of all points, and in *ret_sorted the
 * same in order; NULL: on a mount, or no memory. Both malloc'ed.
 */
static uint64_t *keys_of_points(const struct result *res, uint64_t **ret_sorted)
{
	const struct workload *w = res->r->w;
	_cleanup_free_ uint64_t *keys = calloc(w->n_points, sizeof(*keys));

	*ret_sorted = calloc(w->n_points, sizeof(*keys));
	for (size_t i = 0; keys && *ret_sorted && i < w->n_points; i++) {
		_cleanup_(cell_free) struct cell cell = { 0 };

		if (res->r->mounted || workload_cell(w, i, false, &cell) < 0)
			return NULL;
		keys[i] = (*ret_sorted)[i] = cell.hash;
	}
	if (!keys || !*ret_sorted)
		return NULL;
	qsort(*ret_sorted, w->n_points, sizeof(*keys), util_compare_u64);
	return TAKE_PTR(keys);
}

static bool is_twice(const uint64_t *sorted, size_t n, uint64_t key)
{
	const uint64_t *at =
		bsearch(&key, sorted, n, sizeof(key), util_compare_u64);

	return (at > sorted && at[-1] == key) ||
	       (at + 1 < sorted + n && at[1] == key);
}

static const char *enough(const struct result *res, size_t point)
{
	const struct workload *w = res->r->w;
	const struct spread *au =
		result_at(res, point, metric_find(&w->metrics, "au"));

	if (!conf_node_get(w->root, "rules"))
		return NULL;
	return !au->n					  ? "-"
	       : au->median >= 100 * w->rules.au.fraction ? "yes"
							  : "no";
}

/* {median: "12.31", range: "(12.20-12.58)"}; the range from two values on. */
static json_t *value_json(const struct spread *s)
{
	char median[RESULT_TEXT] = "-", low[RESULT_TEXT], high[RESULT_TEXT];

	if (s->n)
		result_number(median, sizeof(median), s->median);
	result_number(low, sizeof(low), s->ci_low);
	result_number(high, sizeof(high), s->ci_high);
	return json_pack("{s:s, s:o?}", "median", median, "range",
			 s->n > 1 && strcmp(low, high) != 0
				 ? json_sprintf("(%s-%s)", low, high)
				 : NULL);
}

static json_t *row_json(const struct result *res, size_t point)
{
	const struct workload *w = res->r->w;
	json_t *labels = json_array(), *values = json_array();

	for (size_t a = 0; a < w->n_axes; a++)
		json_array_append_new(
			labels, json_string(workload_at(w, point, a)->label));
	for (size_t m = 0; m < res->n_columns; m++)
		json_array_append_new(
			values,
			value_json(result_at(res, point, res->metrics[m])));
	return json_pack("{s:o, s:o, s:s?, s:I, s:I}", "labels", labels,
			 "values", values, "enough", enough(res, point), "ok",
			 (json_int_t)res->n_ok[point], "failed",
			 (json_int_t)res->n_failed[point]);
}

json_t *result_table_json(const struct result *res)
{
	const struct workload *w = res->r->w;
	json_t *axes = json_array(), *columns = json_array(),
	       *rows = json_array();

	for (size_t a = 0; a < w->n_axes; a++)
		json_array_append_new(axes, json_string(w->axes[a].name));
	for (size_t i = 0; i < res->n_columns; i++) {
		const struct metric *m = res->metrics[i];

		json_array_append_new(columns,
				      json_pack("{s:s, s:s?}", "label",
						m->label ? m->label : m->name,
						"unit", m->unit));
	}
	for (size_t i = 0; i < w->n_points; i++)
		json_array_append_new(rows, row_json(res, i));
	return json_pack("{s:o, s:o, s:o, s:o?}", "axes", axes, "columns",
			 columns, "rows", rows, "enough",
			 conf_node_get(w->root, "rules")
				 ? json_sprintf("%.3g %%",
						100 * w->rules.au.fraction)
				 : NULL);
}

static void put_text(const struct columns *t, size_t row, size_t *column,
		     const char *text)
{
	snprintf(columns_at(t, row, (*column)++), COLUMNS_TEXT, "%s", text);
}

static void fill_header(const json_t *table, const struct columns *t)
{
	const char *enough = json_get_text(table, "enough");
	json_t *one;
	size_t i, c = 0, unit;

	json_array_foreach (json_object_get(table, "axes"), i, one)
		put_text(t, 0, &c, json_string_value(one));
	unit = c;
	json_array_foreach (json_object_get(table, "columns"), i, one) {
		put_text(t, 0, &c, json_get_text(one, "label"));
		put_text(t, 1, &unit, json_get_text(one, "unit"));
	}
	if (enough[0]) {
		put_text(t, 0, &c, "AU enough");
		snprintf(columns_at(t, 1, unit), COLUMNS_TEXT, ">= %s", enough);
	}
	put_text(t, 0, &c, "runs");
}

static void fill_row(const json_t *row, const struct columns *t, size_t at,
		     bool alike)
{
	json_int_t failed = json_integer_value(json_object_get(row, "failed"));
	const char *range;
	char lost[40] = "";
	json_t *one;
	size_t i, c = 0;

	json_array_foreach (json_object_get(row, "labels"), i, one)
		put_text(t, at, &c, json_string_value(one));
	json_array_foreach (json_object_get(row, "values"), i, one) {
		range = json_get_text(one, "range"); /* it may go below */
		snprintf(columns_at(t, at, c++), COLUMNS_TEXT, "%s%s%s",
			 json_get_text(one, "median"), range[0] ? "\n" : "",
			 range);
	}
	if (json_get_text(row, "enough")[0])
		put_text(t, at, &c, json_get_text(row, "enough"));
	if (failed)
		snprintf(lost, sizeof(lost),
			 ", %" JSON_INTEGER_FORMAT " failed", failed);
	snprintf(columns_at(t, at, c), COLUMNS_TEXT,
		 "%" JSON_INTEGER_FORMAT "%s%s",
		 json_integer_value(json_object_get(row, "ok")), lost,
		 alike ? " *" : "");
}

static const char *text_of(const json_t *record, const char *path)
{
	const char *s = NULL;
	char key[32];
	const char *dot;

	while (record && (dot = strchr(path, '.'))) {
		snprintf(key, sizeof(key), "%.*s", (int)(dot - path), path);
		record = json_object_get(record, key);
		path = dot + 1;
	}
	s = json_string_value(json_object_get(record, path));
	return s ? s : "?";
}

/* A program of `exec`: its record has not the configuration of gpemu-train. */
static bool is_program(const json_t *job)
{
	return !json_object_get(job, "config");
}

/* The real part of the data, and of the servers of a cell. */
static void provenance_real(const struct result *res, const json_t *job,
			    FILE *f)
{
	bool mounted = res->r->mounted;
	bool store = workload_is_store_only(res->r->w);
	bool decodes = plugin_is(text_of(job, "config.prep"), "decode");
	json_t *pin = json_object_get(job, "pin");
	bool pinned = !json_is_false(json_object_get(pin, "on"));
	const char *from = mounted ? "mount"
			   : store ? "object store"
				   : "folder";
	const char *cache = mounted ? ", cache decisions" : "";

	if (is_program(job))
		fprintf(f, "REAL      the program and the bytes of the %s%s",
			from, cache);
	else if (plugin_is(text_of(job, "config.loader"), "null"))
		fputs("REAL      no data: batches are synthetic", f);
	else
		fprintf(f, "REAL      bytes read from the %s and copied%s%s%s",
			from, pinned ? " into pinned buffers" : ", not pinned",
			decodes ? ", images decoded" : "", cache);
	if (res->r->w->base[RUN_GPUD])
		fputs("; gpemu-gpud,\n          its clients and scheduler", f);
	if (res->r->w->base[RUN_PREPD])
		fputs("; gpemu-prepd,\n          its workers and connections",
		      f);
	if (res->r->w->base[RUN_S3])
		fputs("; gpemu-s3,\n          its connections and cache "
		      "decisions",
		      f);
	fputc('\n', f);
	if (strcmp(text_of(pin, "notice"), "?"))
		fprintf(f, "          %s\n", text_of(pin, "notice"));
}

static void provenance_emulated(const struct result *res, const json_t *job,
				FILE *f)
{
	bool device = res->r->mounted || res->r->w->base[RUN_S3];
	bool gpu = !is_program(job) || json_object_get(job, "gpu");
	double scale = res->r->w->time_scale;

	if (device || gpu)
		fprintf(f, "EMULATED  %s%s%s; the records name the profiles\n",
			device ? "the storage device" : "",
			device && gpu ? ", " : "",
			gpu ? "the GPU and its link" : "");
	if (scale != 1)
		fprintf(f,
			"          an emulated second took %.15g s; seconds "
			"are "
			"emulated, so real work counts %.3g times\n",
			scale, 1 / scale);
}

void result_provenance(const struct result *res, FILE *f)
{
	const json_t *rec = res->first;
	json_t *jobs = json_object_get(rec, "jobs");
	const json_t *job =
		jobs ? json_object_iter_value(json_object_iter(jobs)) : rec;

	if (!rec)
		return;
	if (!strcmp(text_of(job, "kind"), "SIMULATED")) {
		fputs("SIMULATED all times: computed on an event clock, from "
		      "the profiles that the records name\n",
		      f);
		origins_print(res->origins, f);
		return;
	}
	provenance_real(res, job, f);
	provenance_emulated(res, job, f);
	origins_print(res->origins, f);
}

void result_explain(const struct result *res, FILE *f)
{
	uint64_t n = res->r->w->repetitions;
	double level = 100 * (1 - pow(.5, (double)n - 1));

	if (n >= 6)
		fprintf(f,
			"Medians over %" PRIu64 " repetitions, in brackets "
			"the 95 %% confidence interval (order statistics).\n",
			n);
	else if (n > 1)
		fprintf(f,
			"Medians over %" PRIu64 " repetitions, in brackets "
			"their range, which holds the true median with "
			"%.3g %% confidence; 95 %% takes 6.\n",
			n, level);
}

void result_print(const struct result *res, size_t width, FILE *f)
{
	const struct workload *w = res->r->w;
	_cleanup_free_ uint64_t *sorted = NULL;
	_cleanup_free_ uint64_t *keys = keys_of_points(res, &sorted);
	json_auto_t *table = result_table_json(res);
	const json_t *rows = json_object_get(table, "rows"), *row;
	struct columns t;
	bool any = false;
	size_t i;

	if (columns_init(&t, w->n_points + 2,
			 w->n_axes + res->n_columns + 1 +
				 !!conf_node_get(w->root, "rules")) < 0)
		return;
	t.heads = 2;
	t.words = w->n_axes;
	fprintf(f, "%s: %s\n\n", w->name, w->question);
	fill_header(table, &t);
	json_array_foreach (rows, i, row) {
		bool alike = keys && is_twice(sorted, w->n_points, keys[i]);

		fill_row(row, &t, i + 2, alike);
		any = any || alike;
	}
	columns_print(&t, width, f);
	columns_fini(&t);
	fputc('\n', f);
	result_explain(res, f);
	if (any)
		fprintf(f, "* Not mounted: these rows differ only in gpemu-fs "
			   "options, which had no effect.\n");
	result_provenance(res, f);
}
