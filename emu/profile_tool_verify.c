/* SPDX-License-Identifier: MIT */
/* gpemu-profile verify: how far a profile is from the tables it was made of. */
#include "emu/profile_tool.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/cli.h"
#include "common/json.h"
#include "common/util.h"
#include "emu/profile_table.h"

struct options {
	struct cli_common common;
	char *against;
	char *memory_from;
	double tolerance_pct;
};

static const struct conf_field verify_fields[] = {
	CLI_COMMON_FIELDS(struct options, common),
	PROFILE_TOOL_FILE("against", struct options, against,
			  "the measured table"),
	PROFILE_TOOL_TABLE_OPTIONS(struct options),
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
		for (size_t k = 0; k < tm->n; k++) {
			struct table_point *point = &tm->points[k];
			double e = table_error(p, m, point, column);

			ret->errors[ret->n++] = e;
			/* rounding to four digits comes on top */
			ret->beyond +=
				e * point->v[column] >
				table_tolerance(tm, k, column, tolerance) +
					5.1e-4 * point->v[column];
			if (e <= ret->worst.error)
				continue;
			ret->worst = (struct worst){ e, point->batch };
			ret->worst_model = tm->name;
		}
	}
	table_sort(ret->errors, ret->n);
	return 0;
}

static double percentile(const struct verdict *v, double q)
{
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
		return err_set(err, -EINVAL,
			       "%s: none of the points counts "
			       "as measured",
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

static int verify(const char *name, const struct options *o, FILE *f, json_t *j,
		  struct err *err)
{
	struct gpu_profile p;
	struct table t = { 0 };
	int r = gpu_profile_load(name, &p, err);

	if (r == 0)
		r = table_load(o->against, &t, err);
	if (r == 0)
		r = cover(&t, &p, err);
	if (r == 0)
		r = table_clean_memory_from(&t, o->against, o->memory_from,
					    p.memory_mib, err);
	if (r == 0)
		r = verify_columns(&p, &t, o->tolerance_pct / 100, f, j, err);
	table_free(&t);
	gpu_profile_free(&p);
	return r;
}

int profile_tool_verify(int argc, char **argv)
{
	static const struct cli_program program = {
		.name = "gpemu-profile verify",
		.args = "GPU",
		.n_args = 1,
		.summary = "Print how far the profile GPU is from every point "
			   "of the table it was made of.",
		.notes = "'beyond' counts the points that are off by more "
			 "than the tolerance and the noise allow; exit "
			 "status 1 when there are any.",
		.fields = verify_fields,
	};
	struct options o = { .tolerance_pct = 1 };
	json_auto_t *j = json_object();
	struct err err = { 0 };
	char *name;
	int r;

	cli_parse(&program, argc, argv, &o, &name);

	_cleanup_(profile_tool_out_close) FILE *f = profile_tool_out(&o.common);

	if (!o.against) {
		fprintf(stderr, "%s: --against is needed\n", program.name);
		conf_free(verify_fields, &o);
		return EXIT_STATUS_USAGE;
	}
	r = verify(name, &o, f, j, &err);
	if (r == 0 && o.common.json)
		r = json_write(j, o.common.json, &err);
	conf_free(verify_fields, &o);
	return r < 0 ? cli_fail(r, &err) : EXIT_STATUS_DONE;
}
