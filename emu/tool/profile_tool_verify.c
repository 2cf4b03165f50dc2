/* SPDX-License-Identifier: MIT */
/*
 * gpemu-profile verify: compares a profile with the table from which it was
 * made, or tests how well a table predicts batch sizes left out of it.
 */
#include "emu/tool/profile_tool.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/program/cli.h"
#include "common/json.h"
#include "common/util.h"
#include "emu/profile/profile_table.h"

struct options {
	struct cli_common common;
	char *format;
	struct conf_list against; /* char * */
	char *memory_from;
	double tolerance_pct;
	uint64_t hold_out;
};

static const struct conf_field verify_fields[] = {
	CLI_COMMON_FIELDS(struct options, common),
	PROFILE_TOOL_FORMAT(struct options),
	{ CONF_KEY(against, CONF_LIST, struct options), .arg = "FILE",
	  .item = CONF_STRING, .item_size = sizeof(char *), .lone = true,
	  .help = "the measured table; may be given several times" },
	PROFILE_TOOL_TABLE_OPTIONS(struct options),
	{ CONF_KEY(hold_out, CONF_UINT, struct options), .arg = "N", .min = 2,
	  .max = 1000,
	  .help = "leave every Nth point out of the table, thin the rest as "
		  "import does, and print the deviation from those left out" },
	{ 0 },
};

struct worst {
	double error; /* relative */
	uint64_t batch;
};

struct verdict {
	double *errors;
	size_t n, beyond;
	struct worst worst;
	const char *worst_model;
};

static void add_error(struct verdict *v, const char *model, uint64_t batch,
		      double e)
{
	v->errors[v->n++] = e;
	if (e <= v->worst.error)
		return;
	v->worst = (struct worst){ e, batch };
	v->worst_model = model;
}

/* One column of all models; the profile says what counts as measured. */
static int judge(const struct gpu_profile *p, const struct table *t,
		 size_t column, double tolerance, struct verdict *ret,
		 struct err *err)
{
	for (size_t i = 0; i < t->n; i++) {
		struct table_model *tm = &t->models[i];
		const struct gpu_model *m = gpu_profile_model(p, tm->name, err);

		if (!m)
			return -EINVAL;
		if (!table_column_given(tm, column))
			continue;
		for (size_t k = 0; k < tm->n; k++) {
			struct table_point *point = &tm->points[k];
			double e = table_error(p, m, point, column);

			add_error(ret, tm->name, point->batch, e);
			/* rounding to four digits comes on top */
			ret->beyond +=
				e * point->v[column] >
				table_tolerance(tm, k, column, tolerance) +
					5.1e-4 * point->v[column];
		}
	}
	table_sort(ret->errors, ret->n);
	return 0;
}

static double percentile(const struct verdict *v, double q)
{
	if (!v->n)
		return 0;
	return v->errors[(size_t)(q * (double)(v->n - 1))] * 100;
}

static void print_verdict(size_t column, const struct verdict *v, FILE *f,
			  json_t *j)
{
	fprintf(f, "%-15s %6zu  %7.3f %7.3f %8.3f %7zu  %s %" PRIu64 "\n",
		table_column_name(column), v->n, percentile(v, .5),
		percentile(v, .99), v->worst.error * 100, v->beyond,
		v->worst_model ? v->worst_model : "-", v->worst.batch);
	json_object_set_new(
		j, table_column_name(column),
		json_pack("{s:I,s:f,s:f,s:f,s:I}", "points", (json_int_t)v->n,
			  "p50_pct", percentile(v, .5), "p99_pct",
			  percentile(v, .99), "max_pct", v->worst.error * 100,
			  "beyond_tolerance", (json_int_t)v->beyond));
}

static int verify_columns(const struct gpu_profile *p, const struct table *t,
			  double tolerance, FILE *f, json_t *j, struct err *err)
{
	size_t n = 0, beyond = 0;
	int r = 0;

	for (size_t i = 0; i < t->n; i++)
		n += t->models[i].n;
	if (!n)
		return err_set(
			err, -EINVAL,
			"%s: the profile lists none of its points as measured",
			p->name);
	fprintf(f, "%-15s %6s  %7s %7s %8s %7s  %s\n", p->name, "points",
		"p50 %", "p99 %", "max %", "beyond", "worst at");
	for (size_t c = 0; c < TABLE_COLUMNS && r == 0; c++) {
		_cleanup_free_ double *errors = calloc(n, sizeof(*errors));
		struct verdict v = { .errors = errors };

		if (!errors)
			return -ENOMEM;
		r = judge(p, t, c, tolerance, &v, err);
		if (r < 0)
			return r;
		print_verdict(c, &v, f, j);
		beyond += v.beyond;
	}
	if (beyond)
		r = err_set(err, -ERANGE,
			    "%s: %zu points are beyond the tolerance", p->name,
			    beyond);
	return r;
}

/* --- points left out -------------------------------------------------- */

/* The columns, and forward and backward together: a step. */
enum { STEP = TABLE_COLUMNS, N_HELD };

struct held {
	struct verdict column[N_HELD];
	size_t n_unknown; /* models without a point that was left out */
	double excess;	  /* over the error stated for the rest, at most */
};

static void judge_held(const struct gpu_profile *p, const struct gpu_model *m,
		       const struct table_point *point, double stated,
		       struct held *held)
{
	double want = point->v[0] + point->v[1], e;
	struct gpu_cost c;

	for (size_t k = 0; k < TABLE_COLUMNS; k++)
		if (point->v[k] != 0)
			add_error(&held->column[k], m->name, point->batch,
				  table_error(p, m, point, k));
	gpu_profile_cost(p, m, point->batch, &c);
	e = fabs((double)(c.forward_ns + c.backward_ns) / 1e6 / want - 1);
	add_error(&held->column[STEP], m->name, point->batch, e);
	held->column[STEP].beyond += e > stated;
	held->excess = fmax(held->excess, e - stated);
}

/* The ends stay: beyond them nothing can be interpolated. */
static bool is_held(const struct table_model *m, size_t i, uint64_t every)
{
	return i > 0 && i + 1 < m->n && (i + 1) % every == 0;
}

static int hold_out_model(const struct gpu_profile *p,
			  const struct table_model *m, const struct options *o,
			  struct held *held, struct err *err)
{
	const struct gpu_model *model = gpu_profile_model(p, m->name, err);
	_cleanup_free_ struct table_point *kept = calloc(m->n, sizeof(*kept));
	_cleanup_free_ struct gpu_row *rows = NULL;
	struct table_model rest = { .points = kept };
	struct gpu_model thinned;
	double stated = 0;
	int r;

	if (!model)
		return -EINVAL;
	if (!kept)
		return -ENOMEM;
	thinned = *model;
	for (size_t i = 0; i < m->n; i++)
		if (!is_held(m, i, o->hold_out))
			kept[rest.n++] = m->points[i];
	r = table_thin(&rest, gpu_profile_jump_batch(p, model),
		       o->tolerance_pct / 100, &rows, &thinned.rows.n);
	thinned.rows.items = rows;
	if (r == 0)
		stated = table_stated_error(p, &thinned, &rest);
	for (size_t i = 0; r == 0 && i < m->n; i++)
		if (is_held(m, i, o->hold_out))
			judge_held(p, &thinned, &m->points[i], stated, held);
	held->n_unknown += rest.n == m->n;
	return r;
}

static void print_held(const char *name, const struct options *o,
		       struct held *held, FILE *f, json_t *j)
{
	fprintf(f,
		"%s, every %" PRIu64 "th point left out\n"
		"%-15s %6s  %7s %7s %8s  %s\n",
		name, o->hold_out, "", "points", "p50 %", "p95 %", "max %",
		"worst at");
	for (size_t k = 0; k < N_HELD; k++) {
		struct verdict *v = &held->column[k];
		const char *what = k == STEP ? "step_ms" : table_column_name(k);

		table_sort(v->errors, v->n);
		fprintf(f, "%-15s %6zu  %7.3f %7.3f %8.3f  %s %" PRIu64 "\n",
			what, v->n, percentile(v, .5), percentile(v, .95),
			v->worst.error * 100,
			v->worst_model ? v->worst_model : "-", v->worst.batch);
		json_object_set_new(j, what,
				    json_pack("{s:I,s:f,s:f,s:f}", "points",
					      (json_int_t)v->n, "p50_pct",
					      percentile(v, .5), "p95_pct",
					      percentile(v, .95), "max_pct",
					      v->worst.error * 100));
	}
}

static int hold_out(const struct gpu_profile *p, const struct table *t,
		    const struct options *o, FILE *f, json_t *j,
		    struct err *err)
{
	_cleanup_free_ double *errors = NULL;
	struct held held = { 0 };
	size_t n = 0;
	int r = 0;

	for (size_t i = 0; i < t->n; i++)
		n += t->models[i].n;
	errors = calloc(n * N_HELD + 1, sizeof(*errors));
	if (!errors)
		return -ENOMEM;
	for (size_t k = 0; k < N_HELD; k++)
		held.column[k].errors = errors + k * n;
	for (size_t i = 0; r == 0 && i < t->n; i++)
		r = hold_out_model(p, &t->models[i], o, &held, err);
	if (r == 0 && !held.column[STEP].n)
		r = err_set(err, -EINVAL,
			    "%s: no model has an inner point to leave out, "
			    "so what lies between its points is unknown",
			    p->name);
	if (r < 0)
		return r;
	print_held(p->name, o, &held, f, j);
	fprintf(f,
		"%zu of %zu steps are further off than import states for the "
		"rest, by %.3f %% at most\n",
		held.column[STEP].beyond, held.column[STEP].n,
		held.excess * 100);
	json_add_integer(j, "beyond_stated", held.column[STEP].beyond);
	if (held.n_unknown)
		fprintf(f,
			"unknown of %zu models of %zu: none of their points "
			"could be left out\n",
			held.n_unknown, t->n);
	json_add_integer(j, "models_unknown", held.n_unknown);
	return 0;
}

/* Drop the points beyond what the profile says was measured. */
static int cover(struct table *t, const struct gpu_profile *p, struct err *err)
{
	for (size_t i = 0; i < t->n; i++) {
		struct table_model *tm = &t->models[i];
		const struct gpu_model *m = gpu_profile_model(p, tm->name, err);

		if (!m)
			return -EINVAL;
		while (tm->n && tm->points[tm->n - 1].batch > m->last_batch)
			tm->n--;
	}
	return 0;
}

static int verify(void *options, char **args, FILE *f, json_t **ret,
		  struct err *err)
{
	const struct options *o = options;
	char *const *paths = o->against.items;
	struct gpu_profile p;
	struct table t = { 0 };
	int r;

	if (!o->against.n)
		return err_set(err, -EDOM, "--against CSV is missing");
	*ret = json_object();
	r = gpu_profile_load(args[0], &p, err);
	for (size_t i = 0; r == 0 && i < o->against.n; i++)
		r = import_load(paths[i], o->format, &t, err);
	if (r == 0)
		r = cover(&t, &p, err);
	if (r == 0)
		r = table_clean_memory_from(&t, paths[0], o->memory_from,
					    p.memory_mib, err);
	if (r == 0 && o->hold_out)
		r = hold_out(&p, &t, o, f, *ret, err);
	else if (r == 0)
		r = verify_columns(&p, &t, o->tolerance_pct / 100, f, *ret,
				   err);
	table_free(&t);
	gpu_profile_free(&p);
	return r;
}

int profile_tool_verify(int argc, char **argv)
{
	static const struct cli_kind kinds[] = {
		{ .name = "format", .table = import_table },
		{ 0 },
	};
	static const struct cli_program program = {
		.name = "gpemu-profile verify",
		.args = "GPU",
		.n_args = 1,
		.summary = "Print the deviation of the profile GPU from every "
			   "point of the table from which it was made.",
		.notes = "'beyond' counts the points that deviate by more than "
			 "the tolerance and the noise; exit status 1 if there "
			 "are any. With --hold-out the rows of GPU are not "
			 "used, only its list of measured points.",
		.fields = verify_fields,
		.kinds = kinds,
	};
	struct options o = { .tolerance_pct = 1 };
	char *name;

	return profile_tool_run(&program, argc, argv, &o, &name, verify);
}
