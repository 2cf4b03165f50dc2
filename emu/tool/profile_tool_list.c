/* SPDX-License-Identifier: MIT */
/* gpemu-profile list and check: lists and checks the profile database. */
#include "emu/tool/profile_tool.h"

#include <errno.h>
#include <fnmatch.h>
#include <string.h>

#include "common/json.h"
#include "common/util.h"
#include "emu/profile/profile.h"
#include "emu/profile/profile_gpu.h"

struct options {
	struct cli_common common;
	char *models;
	bool markdown;
};
static const struct conf_field list_fields[] = {
	CLI_COMMON_FIELDS(struct options, common),
	{ CONF_KEY(models, CONF_STRING, struct options), .arg = "PATTERN",
	  .help = "list the models of all GPUs whose name contains PATTERN, or "
		  "matches it if it has * or ?" },
	{ CONF_KEY(markdown, CONF_BOOL, struct options),
	  .help = "print the page of docs/ on the database" },
	{ 0 },
};

/* --- list ------------------------------------------------------------- */

static int list_kind(enum profile_kind kind, FILE *f, json_t *j,
		     struct err *err)
{
	_cleanup_(profile_names_freep) char **names = NULL;
	json_t *list = json_array();
	int r = profile_names(kind, &names, err);

	json_object_set_new(j, profile_kind_name(kind), list);
	for (size_t i = 0; r == 0 && names[i]; i++) {
		struct err bad = { 0 };
		char line[256];

		if (profile_tool_describe(kind, names[i], line, sizeof(line),
					  &bad) < 0)
			snprintf(line, sizeof(line),
				 "broken: see "
				 "gpemu-profile check");
		fprintf(f, "%-8s %-24s %s\n", profile_kind_name(kind), names[i],
			line);
		json_array_append_new(list, json_bytes(names[i]));
	}
	return r;
}

/* --- models ----------------------------------------------------------- */

static bool is_like(const char *name, const char *pattern)
{
	return strpbrk(pattern, "*?[") ? !fnmatch(pattern, name, 0)
				       : strstr(name, pattern) != NULL;
}

static json_t *model_line(const char *gpu, const struct gpu_profile *p,
			  const struct gpu_model *m, FILE *f)
{
	const struct gpu_row *row = m->rows.items;
	char batches[GPU_BATCHES_TEXT];
	json_t *sizes = json_array();

	for (size_t i = 0; i < m->rows.n; i++)
		json_array_append_new(sizes,
				      json_integer((json_int_t)row[i].batch));
	fprintf(f, "%-24s %-40s %-5s batch %s\n", gpu, m->name,
		p->precision ? p->precision : "-",
		gpu_model_batches(m, batches));
	return json_pack("{s:s, s:s, s:s*, s:o, s:s}", "gpu", gpu, "model",
			 m->name, "precision", p->precision, "batch_sizes",
			 sizes, "source", m->source ? m->source : p->source);
}

static int list_models(const char *pattern, FILE *f, json_t *list,
		       struct err *err)
{
	_cleanup_(profile_names_freep) char **names = NULL;
	int r = profile_names(PROFILE_GPU, &names, err);

	for (size_t i = 0; r == 0 && names[i]; i++) {
		struct gpu_profile p;
		const struct gpu_model *m;

		r = gpu_profile_load(names[i], &p, err);
		m = p.models.items;
		for (size_t k = 0; r == 0 && k < p.models.n; k++)
			if (is_like(m[k].name, pattern))
				json_array_append_new(list,
						      model_line(names[i], &p,
								 &m[k], f));
		gpu_profile_free(&p);
	}
	if (r == 0 && !json_array_size(list))
		r = err_set(err, -ENOENT,
			    "no model of a GPU profile matches '%s'", pattern);
	return r;
}

/* --- the command ------------------------------------------------------ */

static int list_kinds(int only, FILE *f, json_t *j, struct err *err)
{
	int r = 0;

	for (int k = 0; r == 0 && k < PROFILE_N_KINDS; k++)
		if (only < 0 || k == only)
			r = list_kind((enum profile_kind)k, f, j, err);
	return r;
}

static int list(void *options, char **args, FILE *f, json_t **ret,
		struct err *err)
{
	const struct options *o = options;
	int only = args[0] ? profile_kind_find(args[0], err) : -1;

	if (args[0] && only < 0)
		return -EDOM;
	if (o->models && args[0] && only != PROFILE_GPU)
		return err_set(err, -EDOM, "only GPUs have --models");
	if (o->markdown && (o->models || args[0]))
		return err_set(err, -EDOM,
			       "--markdown prints the whole page: no KIND, no "
			       "--models");
	*ret = o->models ? json_array() : json_object();
	if (o->models)
		return list_models(o->models, f, *ret, err);
	return o->markdown ? profile_tool_page(f, err)
			   : list_kinds(only, f, *ret, err);
}

int profile_tool_list(int argc, char **argv)
{
	static const struct cli_program program = {
		.name = "gpemu-profile list",
		.args = "[KIND]",
		.n_optional = 1,
		.summary = "List the profiles: all, or of one KIND (gpu, "
			   "storage, dataset, prep, node, share).",
		.fields = list_fields,
	};
	struct options o = { 0 };
	char *kind;

	return profile_tool_run(&program, argc, argv, &o, &kind, list);
}

/* --- check ------------------------------------------------------------ */

/* A line for each error of a profile. */
static void print_bad(enum profile_kind kind, const char *errors, FILE *f)
{
	while (*errors) {
		size_t n = strcspn(errors, "\n");

		fprintf(f, "BAD  %-8s %.*s\n", profile_kind_name(kind), (int)n,
			errors);
		errors += n + (errors[n] == '\n');
	}
}

/* Prints one line, or all errors; returns whether the profile is valid. */
static bool check_one(enum profile_kind kind, const char *name, FILE *f,
		      json_t *j)
{
	_cleanup_free_ char *errors = NULL;
	size_t n = 0;
	struct err err = { .all = open_memstream(&errors, &n) };
	char line[256];
	int r = err.all ? profile_tool_describe(kind, name, line, sizeof(line),
						&err)
			: -ENOMEM;

	if (r < 0 && err.all && (err.text[0] || !ftell(err.all)))
		fprintf(err.all, "%s\n", err.text[0] ? err.text : strerror(-r));
	if (err.all)
		fclose(err.all);
	if (r == 0)
		fprintf(f, "ok   %-8s %s: %s\n", profile_kind_name(kind), name,
			line);
	else
		print_bad(kind, errors ? errors : "out of memory", f);
	if (r < 0 && n)
		errors[n - 1] = '\0';
	json_array_append_new(j,
			      json_pack("{s:s,s:o,s:b,s:o}", "kind",
					profile_kind_name(kind), "name",
					json_bytes(name), "ok", r == 0, "text",
					json_bytes(r == 0   ? line
						   : errors ? errors
							    : "")));
	return r == 0;
}

static bool check_file(const char *path, FILE *f, json_t *j)
{
	_cleanup_free_ char *plain = NULL;
	enum profile_kind kind;
	struct err err = { 0 };

	/* a file in this folder must not be mistaken for a name */
	if (!profile_is_path(path) && asprintf(&plain, "./%s", path) < 0)
		return false;
	if (plain)
		path = plain;
	if (profile_tool_kind_of_file(path, &kind, &err) == 0)
		return check_one(kind, path, f, j);
	fprintf(f, "BAD  %-8s %s\n", "-", err.text);
	json_array_append_new(j, json_pack("{s:n,s:o,s:b,s:o}", "kind", "name",
					   json_bytes(path), "ok", 0, "text",
					   json_bytes(err.text)));
	return false;
}

static int check_all(FILE *f, json_t *j, struct err *err)
{
	bool good = true;

	for (int k = 0; k < PROFILE_N_KINDS; k++) {
		_cleanup_(profile_names_freep) char **names = NULL;
		int r = profile_names((enum profile_kind)k, &names, err);

		if (r < 0)
			return r;
		for (size_t i = 0; names[i]; i++)
			good &= check_one((enum profile_kind)k, names[i], f, j);
	}
	return good;
}

static int check_files(void *options, char **files, FILE *f, json_t **ret,
		       struct err *err)
{
	int good = 1;

	(void)options;
	*ret = json_array();
	for (size_t i = 0; files[i]; i++)
		good &= check_file(files[i], f, *ret);
	if (!files[0])
		good = check_all(f, *ret, err);
	return good < 0 ? good : good ? EXIT_STATUS_DONE : EXIT_STATUS_FAILED;
}

int profile_tool_check(int argc, char **argv)
{
	_cleanup_free_ char **files = calloc((size_t)argc + 1, sizeof(*files));
	const struct cli_program program = {
		.name = "gpemu-profile check",
		.args = "[FILE...]",
		.n_optional = (size_t)argc,
		.summary = "Read every profile of the database, or the given "
			   "files, and report errors.",
		.fields = profile_tool_common_fields,
	};
	struct cli_common o = { 0 };

	return files ? profile_tool_run(&program, argc, argv, &o, files,
					check_files)
		     : cli_fail(-ENOMEM, &(struct err){ 0 });
}
