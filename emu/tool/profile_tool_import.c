/* SPDX-License-Identifier: MIT */
/*
 * gpemu-profile import: converts measured tables to profiles. The formats are
 * in emu/import, one file each.
 *
 * Text and laws of the profile come from a head, which may be an earlier
 * profile: importing the same tables with the shipped profile as head
 * reproduces the shipped profile byte for byte.
 */
#include "emu/tool/profile_tool.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/program/cli.h"
#include "common/json.h"
#include "common/text/rows.h"
#include "common/util.h"
#include "emu/profile/profile_table.h"

struct options {
	struct cli_common common;
	char *format;
	char *head;
	char *coverage;
	char *gpu;
	char *model_transfer;
	char *facts;
	char *memory_from;
	char *output;
	double tolerance_pct;
};

static const struct conf_field import_fields[] = {
	CLI_COMMON_FIELDS(struct options, common),
	PROFILE_TOOL_FORMAT(struct options),
	PROFILE_TOOL_FILE(head, struct options,
			  "profile that provides everything except the models"),
	PROFILE_TOOL_FILE(
		coverage, struct options,
		"gpu,model,last_measured_batch_compute: larger batches are "
		"omitted"),
	{ CONF_KEY(gpu, CONF_STRING, struct options), .arg = "NAME",
	  .help = "name of the GPU in the coverage table (default: the name of "
		  "the CSV file)" },
	PROFILE_TOOL_FILE(
		model_transfer, struct options,
		"model,model_transfer_s (default: the parameters in fp32 "
		"over the link)"),
	PROFILE_TOOL_FILE(facts, struct options,
			  "model,parameters (default: what the table has)"),
	PROFILE_TOOL_TABLE_OPTIONS(struct options),
	PROFILE_TOOL_FILE(output, struct options,
			  "profile to write (default: stdout)"),
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

static int load_measured(char *const *paths, const struct options *o,
			 const struct gpu_profile *head, struct table *ret,
			 struct err *err)
{
	_cleanup_free_ char *gpu = NULL;
	int r = stem(paths[0], &gpu);

	for (size_t i = 0; r == 0 && paths[i]; i++)
		r = import_load(paths[i], o->format, ret, err);
	if (r == 0 && !ret->n)
		r = err_set(err, -EINVAL, "%s: no training step", paths[0]);
	if (r == 0 && o->coverage)
		r = table_cover(ret, o->coverage, o->gpu ? o->gpu : gpu, err);
	if (r == 0)
		r = table_clean_memory_from(ret, paths[0], o->memory_from,
					    head->memory_mib, err);
	return r;
}

static bool same_model(const struct rows_field *row, const char *model)
{
	return !strncmp(row->text, model, row->n) &&
	       (!model[row->n] || model[row->n] == ':');
}

/* A table of the column `number` by models; no path: there is none. */
struct facts {
	const char *path, *number;
	char *bytes;
	struct rows rows;
};

static int load_facts(struct facts *f, struct err *err)
{
	return f->path ? rows_load(&f->rows, f->path, &f->bytes, err) : 0;
}

/* The number of `model`, or of all its variants; *ret is kept without a table.
 */
static int look_up(const struct facts *f, const char *model, double *ret)
{
	const char *const words[] = { "model", f->number };
	struct rows c = f->rows;
	bool found = false;
	int at[2], r;

	if (!f->path)
		return 0;
	r = rows_begin_table(&c, words, 2, 2, at);
	while (r == 0 && rows_next(&c)) {
		r = rows_check_width(&c);
		if (r < 0 || found || !same_model(&c.f[at[0]], model))
			continue;
		r = rows_number(&c, at[1], f->number, 0, 1e15, ret);
		found = true;
	}
	return r == 0 && !found ? err_set(c.err, -EINVAL, "%s: no row of '%s'",
					  c.name, model)
				: r;
}

/* --- one model -------------------------------------------------------- */

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
	ret->tolerance_pct = ceil(table_stated_error(p, ret, t) * 1e3) / 10;
	if (t->source && !(ret->source = strdup(t->source)))
		return -ENOMEM;
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

/* Facts of a model that no step has. */
static int add_facts(const struct gpu_profile *p, const struct table_model *t,
		     const struct facts *facts, const struct facts *transfer,
		     struct gpu_model *m)
{
	double parameters = (double)t->parameters, seconds = 0;
	int r = look_up(facts, t->name, &parameters);

	m->parameters = (uint64_t)parameters;
	if (r == 0)
		r = look_up(transfer, t->name, &seconds);
	m->model_transfer_ms = seconds * 1e3;
	if (t->sample_bytes != p->sample_bytes)
		m->sample_bytes = t->sample_bytes;
	return r;
}

/* The jitter of a model, where its source gives one. */
static int add_noise(struct gpu_profile *p, const struct table_model *t)
{
	struct conf_list *l = &p->noise.models;
	struct gpu_noise_model *m = l->items;

	if (t->cv <= 0)
		return 0;
	m = realloc(m, (l->n + 1) * sizeof(*m));
	if (!m)
		return -ENOMEM;
	l->items = m;
	m[l->n++] = (struct gpu_noise_model){ .name = strdup(t->name),
					      .cv_pct = t->cv * 100 };
	if (!p->noise.source)
		p->noise.source = strdup("the source of the model's rows");
	return m[l->n - 1].name && p->noise.source ? 0 : -ENOMEM;
}

static int make_models(struct gpu_profile *p, const struct table *t,
		       const struct facts *facts, const struct facts *transfer,
		       const struct options *o)
{
	struct gpu_model *m = calloc(t->n, sizeof(*m));
	int r = m ? 0 : -ENOMEM;

	p->models.items = m;
	for (size_t i = 0; r == 0 && i < t->n; i++) {
		p->models.n = i + 1;
		r = add_facts(p, &t->models[i], facts, transfer, &m[i]);
		if (r == 0)
			r = make_model(p, &t->models[i], o, &m[i]);
		if (r == 0)
			r = add_noise(p, &t->models[i]);
	}
	return r;
}

/* --- import ----------------------------------------------------------- */

static int import(void *options, char **paths, FILE *f, json_t **ret,
		  struct err *err)
{
	const struct options *o = options;
	struct facts facts = { .path = o->facts, .number = "parameters" };
	struct facts transfer = { .path = o->model_transfer,
				  .number = "model_transfer_s" };
	struct gpu_profile p;
	struct table t = { 0 };
	int r;

	(void)f;
	(void)ret;
	if (!o->head)
		return err_set(err, -EDOM, "--head is required");
	r = gpu_profile_load_head(o->head, &p, err);
	gpu_profile_free_models(&p);
	if (r == 0)
		r = load_measured(paths, o, &p, &t, err);
	if (r == 0)
		r = load_facts(&facts, err);
	if (r == 0)
		r = load_facts(&transfer, err);
	if (r == 0)
		r = make_models(&p, &t, &facts, &transfer, o);
	if (r == 0)
		r = profile_tool_write(&p, o->output, err);
	free(facts.bytes);
	free(transfer.bytes);
	table_free(&t);
	gpu_profile_free(&p);
	return r;
}

int profile_tool_import(int argc, char **argv)
{
	_cleanup_free_ char **paths = calloc((size_t)argc + 1, sizeof(*paths));
	static const struct cli_kind kinds[] = {
		{ .name = "format", .table = import_table },
		{ 0 },
	};
	const struct cli_program program = {
		.name = "gpemu-profile import",
		.args = "FILE...",
		.n_args = 1,
		.n_optional = (size_t)argc,
		.summary = "Make a GPU profile from the measured table in "
			   "FILE..., of one of the formats that --list format "
			   "prints.",
		.notes = "Rows that lie on the line between others, within the "
			 "tolerance or the noise of the data, are omitted. "
			 "--head is a GPU profile; its models are not used.",
		.fields = import_fields,
		.kinds = kinds,
	};
	struct options o = { .tolerance_pct = 1 };

	return paths ? profile_tool_run(&program, argc, argv, &o, paths, import)
		     : cli_fail(-ENOMEM, &(struct err){ 0 });
}
