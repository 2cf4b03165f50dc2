/* SPDX-License-Identifier: MIT */
#include "runner/result/run_result.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/json.h"
#include "common/util.h"
#include "runner/cell/run_record.h"
#include "runner/cell/run_disturb.h"
#include "runner/run/run_host.h"
#include "runner/result/run_compare.h"
#include "runner/result/run_origins.h"
#include "runner/spec/run_expect.h"

/* --- metrics ---------------------------------------------------------- */

static void add_metric(struct result *res, const struct metric *m)
{
	for (size_t i = 0; i < res->n_metrics; i++)
		if (res->metrics[i] == m)
			return;
	res->metrics[res->n_metrics++] = m;
}

/* Wall time is shown only for programs without other metrics. */
static bool runs_programs(const struct workload *w)
{
	const struct job_spec *j = w->jobs.items;
	bool exec = w->base[RUN_EXEC] != NULL;

	for (size_t i = 0; i < w->jobs.n; i++)
		exec = exec || j[i].exec;
	return exec;
}

static int names_node(void *ctx, const struct setting *s, struct err *err)
{
	(void)err;
	*(bool *)ctx |= s->program == RUN_TRAIN && !strcmp(s->key, "node");
	return 0;
}

/* Runs without a node have no cost. */
static bool uses_node(const struct workload *w)
{
	const struct job_spec *j = w->jobs.items;
	bool found = w->base[RUN_TRAIN] &&
		     conf_node_get(w->base[RUN_TRAIN], "node");

	for (size_t i = 0; i < w->jobs.n; i++)
		found = found ||
			(j[i].train && conf_node_get(j[i].train, "node"));
	workload_each_setting(w, names_node, &found, NULL);
	return found;
}

static bool is_cost(const char *metric)
{
	return !strcmp(metric, "cost") || !strcmp(metric, "energy");
}

/* Built-in metrics need a single job, or a single mount. */
static bool has_builtin(const struct workload *w, const struct metric *m)
{
	bool mount = !strncmp(m->path, "mount.", 6);

	return (mount ? w->mounts.n : w->jobs.n) <= 1 &&
	       (uses_node(w) || !is_cost(m->name));
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
	for (size_t i = 0; i + !runs_programs(w) < n_builtin; i++)
		if (has_builtin(w, &metric_builtin[i]))
			add_metric(res, metric_find(&w->metrics,
						    metric_builtin[i].name));
	for (size_t i = 0; i < w->metrics.n; i++)
		add_metric(res, &own[i]);
	if (!w->columns.n)
		res->n_columns = res->n_metrics;
	/* always in the files: a check or plot may use it */
	for (size_t i = 0; i < n_builtin; i++)
		add_metric(res,
			   metric_find(&w->metrics, metric_builtin[i].name));
	return 0;
}

/* --- records ---------------------------------------------------------- */

static int add_record(struct result *res, size_t point, size_t repetition,
		      const json_t *record)
{
	bool disturbed = disturb_is(record);

	for (size_t i = 0; i < res->n_metrics; i++) {
		const struct metric *m = res->metrics[i];
		double *v = result_value(res, point, repetition, i);
		int code = m->of ? 0 : metric_value(m, record, v);

		if (code == -ENOMEM)
			return code;
		*result_disturbed(res, point, repetition, i) = disturbed;
	}
	return 0;
}

/*
 * The account of the time of the epochs after the first, summed over
 * repetitions and jobs.
 */
static void add_job_parts(struct result_parts *parts, const json_t *record)
{
	static const char *const keys[RESULT_PARTS] = {
		"compute_s",	  "fetch_stall_s",	"prep_stall_s",
		"pin_stall_s",	  "transfer_stall_s",	"allreduce_s",
		"barrier_wait_s", "checkpoint_stall_s", "host_stall_s",
	};
	const json_t *epochs = json_object_get(record, "epochs");
	size_t n = json_array_size(epochs);

	for (size_t i = n > 1; i < n; i++) {
		const json_t *e = json_array_get(epochs, i);

		for (size_t k = 0; k < RESULT_PARTS; k++)
			parts->seconds[k] += json_get_number(e, keys[k]);
		parts->total += json_get_number(e, "seconds");
		parts->n++;
	}
}

static void add_parts(struct result *res, size_t point, const json_t *record)
{
	json_t *jobs = json_object_get(record, "jobs"), *one;
	const char *name;

	add_job_parts(&res->parts[point], record);
	json_object_foreach (jobs, name, one)
		add_job_parts(&res->parts[point], one);
}

/* All repetitions of one point. */
static int add_point(struct result *res, size_t point)
{
	const struct workload *w = res->r->w;
	int code = 0;

	for (size_t i = 0; code == 0 && i < w->repetitions; i++) {
		json_auto_t *record = NULL;
		_cleanup_(cell_free) struct cell cell = { 0 };

		code = workload_cell(w, i * w->n_points + point,
				     res->r->mounted, &cell);
		if (code < 0)
			return code;
		record = cell_record(res->r, &cell);
		if (!record) {
			res->n_failed[point]++;
			continue;
		}
		res->n_ok[point]++;
		code = add_record(res, point, i, record);
		json_array_append(res->records, record);
		if (code == 0)
			code = origins_add(res->origins, record);
		add_parts(res, point, record);
		if (!res->first)
			res->first = json_incref(record);
	}
	return code;
}

/* Called when all values are set. */
static int spread_all(struct result *res)
{
	const size_t n_reps = res->r->w->repetitions;
	_cleanup_free_ double *some = calloc(n_reps, sizeof(*some));

	if (!some)
		return -ENOMEM;
	for (size_t at = 0; at < res->n_metrics * res->r->w->n_points; at++) {
		const double *all = &res->value[at * n_reps];
		size_t n = 0;

		for (size_t i = 0; i < n_reps; i++)
			if (!isnan(all[i]))
				some[n++] = all[i];
		res->spreads[at] = stats_spread(some, n);
	}
	return 0;
}

static int init_parts(struct result *res)
{
	res->parts = calloc(res->r->w->n_points, sizeof(*res->parts));
	res->records = json_array();
	res->origins = json_object();
	return res->parts && res->records && res->origins ? 0 : -ENOMEM;
}

static int init_values(struct result *res)
{
	const struct workload *w = res->r->w;
	size_t n = res->n_metrics * w->n_points;

	res->value = calloc(n * w->repetitions, sizeof(*res->value));
	res->disturbed = calloc(n * w->repetitions, sizeof(*res->disturbed));
	res->spreads = calloc(n, sizeof(*res->spreads));
	res->n_ok = calloc(w->n_points, sizeof(*res->n_ok));
	res->n_failed = calloc(w->n_points, sizeof(*res->n_failed));
	if (!res->value || !res->disturbed || !res->spreads || !res->n_ok ||
	    !res->n_failed)
		return -ENOMEM;
	for (size_t i = 0; i < n * w->repetitions; i++)
		res->value[i] = NAN;
	return 0;
}

/* --- derived metrics -------------------------------------------------- */

/*
 * Operands are taken from the same repetition, even at other points: cells of
 * one repetition share the seed, so common random effects cancel.
 */
struct derive {
	const struct result *res;
	size_t point, repetition;
	bool disturbed; /* an operand is */
};

static int operand(void *ctx, const struct expr_ref *ref, size_t i, double *ret)
{
	struct derive *d = ctx;
	const struct workload *w = d->res->r->w;
	const struct metric *m = metric_find(&w->metrics, ref->name);
	size_t point = d->point, at;

	if (expect_move(w, ref, i, &point) < 0)
		return i ? -ERANGE : -ENOENT;
	if (!m)
		return workload_number(workload_setting(w, point, ref->name),
				       ret);
	at = result_place(d->res, m);
	*ret = *result_value(d->res, point, d->repetition, at);
	if (*result_disturbed(d->res, point, d->repetition, at))
		d->disturbed = true;
	return isnan(*ret) ? -ENOENT : 0;
}

static int derive_one(struct result *res, const struct metric *m)
{
	const struct workload *w = res->r->w;
	double scale = m->scale != 0 ? m->scale : 1;
	size_t at = result_place(res, m);

	for (size_t i = 0; i < w->n_points * w->repetitions; i++) {
		struct derive d = { .res = res,
				    .point = i / w->repetitions,
				    .repetition = i % w->repetitions };
		struct expr_result r;
		const char *missing;
		int code = expr_eval(m->expr, operand, &d, &r, &missing);

		if (code == -ENOMEM)
			return code;
		if (code < 0)
			continue;
		*result_value(res, d.point, d.repetition, at) =
			r.side[0] * scale;
		*result_disturbed(res, d.point, d.repetition, at) = d.disturbed;
	}
	return 0;
}

int result_derive(struct result *res)
{
	const struct workload *w = res->r->w;
	const struct metric *m = w->metrics.items;
	int code = 0;

	for (size_t i = 0; code == 0 && i < w->metrics.n; i++)
		if (m[i].of)
			code = derive_one(res, &m[i]);
	return code;
}

/* --- all ---------------------------------------------------------------- */

int result_init(struct result *res, const struct runner *r, struct err *err)
{
	int code;

	*res = (struct result){ .r = r };
	code = choose_metrics(res);
	if (code == 0)
		code = init_values(res);
	if (code == 0)
		code = init_parts(res);
	for (size_t i = 0; code == 0 && i < r->w->n_points; i++)
		code = add_point(res, i);
	if (code == 0)
		code = result_derive(res);
	if (code == 0)
		code = spread_all(res);
	return code < 0 ? err_set(err, code, "out of memory") : 0;
}

void result_fini(struct result *res)
{
	free(res->metrics);
	free(res->value);
	free(res->disturbed);
	free(res->spreads);
	free(res->n_ok);
	free(res->n_failed);
	free(res->parts);
	json_decref(res->records);
	json_decref(res->origins);
	json_decref(res->first);
}

const struct spread *result_at(const struct result *res, size_t point,
			       const struct metric *m)
{
	static const struct spread none = { .median = NAN,
					    .min = NAN,
					    .max = NAN,
					    .ci_low = NAN,
					    .ci_high = NAN };

	return point == WORKLOAD_NO_POINT
		       ? &none
		       : &res->spreads[point * res->n_metrics +
				       result_place(res, m)];
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

/* The values of a spread, with their seeds. */
static void add_values(const struct result *res, size_t point, size_t m,
		       json_t *to)
{
	const struct workload *w = res->r->w;
	json_t *values = json_array(), *seeds = json_array();

	for (size_t i = 0; i < w->repetitions; i++) {
		double v = *result_value(res, point, i, m);

		if (isnan(v))
			continue;
		json_array_append_new(values, json_real(v));
		json_array_append_new(seeds,
				      json_integer((json_int_t)(w->seed + i)));
	}
	json_object_set_new(to, "values", values);
	json_object_set_new(to, "seeds", seeds);
}

static json_t *point_json(const struct result *res, size_t point)
{
	json_t *metrics = json_object();

	for (size_t i = 0; i < res->n_metrics; i++) {
		const struct metric *m = res->metrics[i];
		const struct spread *s = result_at(res, point, m);

		json_t *j = s->n ? spread_json(m, s) : json_null();

		if (s->n)
			add_values(res, point, i, j);
		json_object_set_new(metrics, m->name, j);
	}
	return json_pack("{s:o, s:I, s:I, s:o}", "axes",
			 workload_labels(res->r->w, point), "n",
			 (json_int_t)res->n_ok[point], "failed",
			 (json_int_t)res->n_failed[point], "metrics", metrics);
}

/* Wall time of all runs. */
static double wall_seconds(const struct result *res)
{
	double sum = 0;
	json_t *record;
	size_t i;

	json_array_foreach (res->records, i, record)
		sum += json_get_number(json_object_get(record, "cell"),
				       "wall_seconds");
	return sum;
}

/* The configuration in the file, for comparisons. */
static json_t *setup_json(const struct workload *w)
{
	static const char *const keys[] = { "dataset", "base",	 "mounts",
					    "jobs",    "axes",	 "exclude",
					    "metrics", "warmup", "order" };
	json_t *j = json_object();

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		const struct conf_node *node = conf_node_get(w->root, keys[i]);

		if (node)
			json_object_set_new(j, keys[i], workload_value(node));
	}
	return j;
}

json_t *result_json(const struct result *res)
{
	const struct workload *w = res->r->w;
	json_t *cells = json_array();

	for (size_t i = 0; i < w->n_points; i++)
		json_array_append_new(cells, point_json(res, i));
	return json_pack("{s:o, s:s, s:s, s:o, s:b, s:I, s:f, s:I, "
			 "s:f, s:o, s:O?, s:O, s:o, s:o, s:o, s:s?}",
			 "gpemu", json_version(), "workload", w->name,
			 "question", w->question, "file", json_bytes(w->path),
			 "mounted", res->r->mounted, "seed",
			 (json_int_t)w->seed, "time_scale", w->time_scale,
			 "repetitions", (json_int_t)w->repetitions,
			 "wall_seconds", wall_seconds(res), "cells", cells,
			 "profiles", w->profiles, "runs", res->origins, "files",
			 compare_hashes(w->files), "setup", setup_json(w),
			 "host", host_about(), "figure", w->figure);
}
