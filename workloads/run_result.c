/* SPDX-License-Identifier: MIT */
#include "workloads/run_result.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/util.h"
#include "common/version.h"
#include "workloads/run_cell.h"

/* --- metrics ---------------------------------------------------------- */

static void add_metric(struct result *res, const struct metric *m)
{
	for (size_t i = 0; i < res->n_metrics; i++)
		if (res->metrics[i] == m)
			return;
	res->metrics[res->n_metrics++] = m;
}

/* The columns: as listed, or all the built-in ones and the workload's own. */
static int choose_metrics(struct result *res)
{
	const struct workload *w = res->r->w;
	const struct metric *own = w->metrics.items;
	char *const *columns = w->columns.items;
	size_t n_builtin = 0;

	while (metric_builtin[n_builtin].name)
		n_builtin++;
	res->metrics =
		calloc(n_builtin + w->metrics.n + 1, sizeof(*res->metrics));
	if (!res->metrics)
		return -ENOMEM;
	for (size_t i = 0; i < w->columns.n; i++)
		add_metric(res, metric_find(&w->metrics, columns[i]));
	res->n_columns = res->n_metrics;
	for (size_t i = 0; i < n_builtin; i++)
		add_metric(res,
			   metric_find(&w->metrics, metric_builtin[i].name));
	for (size_t i = 0; i < w->metrics.n; i++)
		add_metric(res, &own[i]);
	if (!w->columns.n)
		res->n_columns = res->n_metrics;
	return 0;
}

/* --- records ---------------------------------------------------------- */

static int add_record(struct result *res, const json_t *record, double *values,
		      size_t *n)
{
	const size_t n_reps = res->r->w->repetitions;

	for (size_t i = 0; i < res->n_metrics; i++) {
		double v;
		int code = metric_value(res->metrics[i], record, &v);

		if (code == -ENOMEM)
			return code;
		if (code == 0)
			values[i * n_reps + n[i]++] = v;
	}
	return 0;
}

/* All repetitions of one point. */
static int add_point(struct result *res, size_t point, double *values,
		     size_t *n)
{
	const struct workload *w = res->r->w;
	int code = 0;

	memset(n, 0, res->n_metrics * sizeof(*n));
	for (size_t i = 0; code == 0 && i < w->repetitions; i++) {
		json_auto_t *record = NULL;
		struct cell cell;

		code = workload_cell(w, i * w->n_points + point,
				     res->r->mounted, &cell);
		if (code < 0)
			return code;
		record = cell_record(res->r, &cell);
		cell_free(&cell);
		if (!record) {
			res->n_failed[point]++;
			continue;
		}
		res->n_ok[point]++;
		code = add_record(res, record, values, n);
		if (!res->first)
			res->first = json_incref(record);
	}
	for (size_t m = 0; code == 0 && m < res->n_metrics; m++)
		res->spreads[point * res->n_metrics + m] =
			stats_spread(&values[m * w->repetitions], n[m]);
	return code;
}

int result_init(struct result *res, const struct runner *r, struct err *err)
{
	const struct workload *w = r->w;
	_cleanup_free_ double *values = NULL;
	_cleanup_free_ size_t *n = NULL;
	int code;

	*res = (struct result){ .r = r };
	code = choose_metrics(res);
	if (code == 0) {
		values = calloc(res->n_metrics * w->repetitions,
				sizeof(*values));
		n = calloc(res->n_metrics, sizeof(*n));
		res->spreads = calloc(res->n_metrics * w->n_points,
				      sizeof(*res->spreads));
		res->n_ok = calloc(w->n_points, sizeof(*res->n_ok));
		res->n_failed = calloc(w->n_points, sizeof(*res->n_failed));
	}
	if (!values || !n || !res->spreads || !res->n_ok || !res->n_failed)
		return err_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; code == 0 && i < w->n_points; i++)
		code = add_point(res, i, values, n);
	return code;
}

void result_fini(struct result *res)
{
	free(res->metrics);
	free(res->spreads);
	free(res->n_ok);
	free(res->n_failed);
	json_decref(res->first);
}

const struct spread *result_at(const struct result *res, size_t point,
			       const struct metric *m)
{
	size_t i = 0;

	while (res->metrics[i] != m)
		i++;
	return &res->spreads[point * res->n_metrics + i];
}

/* --- JSON ------------------------------------------------------------- */

static json_t *spread_json(const struct metric *m, const struct spread *s)
{
	return json_pack("{s:s, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}",
			 "unit", m->unit ? m->unit : "", "n", (json_int_t)s->n,
			 "median", s->median, "min", s->min, "q1", s->q1, "q3",
			 s->q3, "max", s->max, "ci_low", s->ci_low, "ci_high",
			 s->ci_high, "ci_level", s->ci_level);
}

static json_t *point_json(const struct result *res, size_t point)
{
	const struct workload *w = res->r->w;
	json_t *axes = json_object(), *metrics = json_object();

	for (size_t i = 0; i < w->n_axes; i++)
		json_object_set_new(
			axes, w->axes[i].name,
			json_string(workload_at(w, point, i)->label));
	for (size_t i = 0; i < res->n_metrics; i++) {
		const struct metric *m = res->metrics[i];
		const struct spread *s = result_at(res, point, m);

		json_object_set_new(metrics, m->name,
				    s->n ? spread_json(m, s) : json_null());
	}
	return json_pack("{s:o, s:I, s:I, s:o}", "axes", axes, "n",
			 (json_int_t)res->n_ok[point], "failed",
			 (json_int_t)res->n_failed[point], "metrics", metrics);
}

json_t *result_json(const struct result *res)
{
	const struct workload *w = res->r->w;
	json_t *cells = json_array();

	for (size_t i = 0; i < w->n_points; i++)
		json_array_append_new(cells, point_json(res, i));
	return json_pack("{s:{s:s}, s:s, s:s, s:s, s:b, s:I, s:f, s:I, "
			 "s:o}",
			 "gpemu", "version", GPEMU_VERSION, "workload", w->name,
			 "question", w->question, "file", w->path, "mounted",
			 res->r->mounted, "seed", (json_int_t)w->seed,
			 "time_scale", w->time_scale, "repetitions",
			 (json_int_t)w->repetitions, "cells", cells);
}
