/* SPDX-License-Identifier: MIT */
/*
 * gpemu-profile import: converts measured tables to profiles.
 *
 * Text and laws of the profile come from a head, which may be an earlier
 * profile: importing the same tables with the shipped profile as head
 * reproduces the shipped profile byte for byte.
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
#include "emu/profile/csv.h"
#include "emu/profile/profile_table.h"

struct options {
	struct cli_common common;
	char *head;
	char *coverage;
	char *gpu;
	char *model_transfer;
	char *facts;
	char *memory_from;
	char *output;
	double tolerance_pct;
};

#define FILE_OPTION(key, member, text) \
	PROFILE_TOOL_FILE(key, struct options, member, text)

static const struct conf_field import_fields[] = {
	CLI_COMMON_FIELDS(struct options, common),
	FILE_OPTION("head", head,
		    "profile that provides everything except the models"),
	FILE_OPTION("coverage", coverage,
		    "gpu,model,last_measured_batch_compute: larger batches are "
		    "omitted"),
	{ "gpu", CONF_STRING, offsetof(struct options, gpu), .arg = "NAME",
	  .help = "name of the GPU in the coverage table (default: the name of "
		  "the CSV file)" },
	FILE_OPTION("model_transfer", model_transfer, "model,model_transfer_s"),
	FILE_OPTION("facts", facts, "model,parameters"),
	PROFILE_TOOL_TABLE_OPTIONS(struct options),
	FILE_OPTION("output", output, "profile to write (default: stdout)"),
	{ 0 },
};

/* --- reading ---------------------------------------------------------- */

/* "dir/Tesla_V100.csv" -> "Tesla_V100" */
static int stem(const char *path, char **ret)
{
	const char *base = strrchr(path, '/');
	char *dot;

	*ret = strdup(base ? base + 1 : path);
	if (!*ret)
		return -ENOMEM;
	dot = strrchr(*ret, '.');
	if (dot && dot != *ret)
		*dot = '\0';
	return 0;
}

static int load_measured(const char *path, const struct options *o,
			 double memory_mib, struct table *ret, struct err *err)
{
	_cleanup_free_ char *gpu = NULL;
	int r = table_load(path, ret, err);

	if (r == 0)
		r = stem(path, &gpu);
	if (r == 0 && o->coverage)
		r = table_cover(ret, o->coverage, o->gpu ? o->gpu : gpu, err);
	return r < 0 ? r
		     : table_clean_memory_from(ret, path, o->memory_from,
					       memory_mib, err);
}

/* The number of `model` in a table of two columns. */
static int look_up(const struct csv *csv, const char *model, double *ret,
		   struct err *err)
{
	for (size_t row = 0; row < csv->n_rows; row++)
		if (!strcmp(csv_text(csv, row, 0), model))
			return csv_number(csv, row, 1, 0, 1e15, ret, err);
	return err_set(err, -EINVAL, "%s: no row of '%s'", csv->name, model);
}

/* --- one model -------------------------------------------------------- */

static double worst_error(const struct gpu_profile *p,
			  const struct gpu_model *m,
			  const struct table_model *t)
{
	double worst = 0;

	for (size_t i = 0; i < t->n; i++)
		for (size_t c = 0; c < TABLE_COLUMNS; c++)
			worst = fmax(worst,
				     table_error(p, m, &t->points[i], c));
	return worst;
}

static int make_model(const struct gpu_profile *p, const struct table_model *t,
		      const struct options *o, struct gpu_model *ret)
{
	struct gpu_row *rows;
	int r = table_thin(t, gpu_profile_jump_batch(p, ret),
			   o->tolerance_pct / 100, &rows, &ret->rows.n);

	if (r < 0)
		return r;
	ret->rows.items = rows;
	ret->name = strdup(t->name);
	ret->last_batch = t->points[t->n - 1].batch;
	ret->last_is_limit = t->limit;
	ret->tolerance_pct = ceil(worst_error(p, ret, t) * 1e3) / 10;
	if (t->memory_replaced) {
		_cleanup_free_ char *from = NULL;

		if (stem(o->memory_from, &from) < 0 ||
		    asprintf(&ret->notes,
			     "The memory columns are those of %s; the own ones "
			     "cannot be true.",
			     from) < 0)
			return -ENOMEM;
	}
	return ret->name ? 0 : -ENOMEM;
}

static int make_models(struct gpu_profile *p, const struct table *t,
		       const struct csv *facts, const struct csv *transfer,
		       const struct options *o, struct err *err)
{
	struct gpu_model *m = calloc(t->n, sizeof(*m));
	int r = m ? 0 : -ENOMEM;

	p->models.items = m;
	for (size_t i = 0; r == 0 && i < t->n; i++) {
		double parameters = 0, seconds = 0;

		p->models.n = i + 1;
		r = look_up(facts, t->models[i].name, &parameters, err);
		if (r == 0)
			r = look_up(transfer, t->models[i].name, &seconds, err);
		if (r == 0)
			r = make_model(p, &t->models[i], o, &m[i]);
		m[i].parameters = (uint64_t)parameters;
		m[i].model_transfer_ms = seconds * 1e3;
	}
	return r;
}

/* --- import ----------------------------------------------------------- */

static int import(const char *path, const struct options *o, struct err *err)
{
	static const char *const facts_columns[] = { "model", "parameters",
						     NULL };
	static const char *const transfer_columns[] = { "model",
							"model_transfer_s",
							NULL };
	struct csv facts = { 0 }, transfer = { 0 };
	struct gpu_profile p;
	struct table t = { 0 };
	int r = gpu_profile_load_head(o->head, &p, err);

	gpu_profile_free_models(&p);
	if (r == 0)
		r = load_measured(path, o, p.memory_mib, &t, err);
	if (r == 0)
		r = csv_load(o->facts, facts_columns, &facts, err);
	if (r == 0)
		r = csv_load(o->model_transfer, transfer_columns, &transfer,
			     err);
	if (r == 0)
		r = make_models(&p, &t, &facts, &transfer, o, err);
	if (r == 0)
		r = profile_tool_write(&p, o->output, err);
	csv_free(&facts);
	csv_free(&transfer);
	table_free(&t);
	gpu_profile_free(&p);
	return r;
}

int profile_tool_import(int argc, char **argv)
{
	static const struct cli_program program = {
		.name = "gpemu-profile import",
		.args = "CSV",
		.n_args = 1,
		.summary = "Make a GPU profile from the measured table CSV: "
			   "model,batch_size,forward_s,backward_s,transfer_s,"
			   "peak_mib,persistent_mib.",
		.notes = "Rows on the line between others, within the "
			 "tolerance or the noise of the data, are omitted. The "
			 "head is a GPU profile; its models are not used.",
		.fields = import_fields,
	};
	struct options o = { .tolerance_pct = 1 };
	struct err err = { 0 };
	char *path;
	int r;

	cli_parse(&program, argc, argv, &o, &path);
	if (!o.head || !o.facts || !o.model_transfer) {
		fprintf(stderr,
			"%s: --head, --facts and --model-transfer are "
			"needed\n",
			program.name);
		conf_free(import_fields, &o);
		return EXIT_STATUS_USAGE;
	}
	r = import(path, &o, &err);
	conf_free(import_fields, &o);
	return r < 0 ? cli_fail(r, &err) : EXIT_STATUS_DONE;
}
