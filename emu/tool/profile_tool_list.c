/* SPDX-License-Identifier: MIT */
/* gpemu-profile list and check: lists and checks the profile database. */
#include "emu/tool/profile_tool.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/json.h"
#include "common/util.h"
#include "emu/profile/profile.h"
#include "emu/profile/profile_dataset.h"
#include "emu/profile/profile_gpu.h"
#include "emu/node/profile_node.h"
#include "emu/profile/profile_prep.h"
#include "emu/profile/profile_share.h"
#include "emu/profile/profile_storage.h"

struct options {
	struct cli_common common;
};
static const struct conf_field fields[] = {
	CLI_COMMON_FIELDS(struct options, common),
	{ 0 },
};

/* --- one line about a profile ----------------------------------------- */

static int describe_gpu(const char *name, char *line, size_t size,
			struct err *err)
{
	struct gpu_profile p;
	int r = gpu_profile_load(name, &p, err);
	int n = 0;

	if (r == 0) {
		n = snprintf(line, size, "%s, %.0f MiB, %zu models", p.name,
			     p.memory_mib, p.models.n);
		for (size_t i = 0; i < p.aliases.n && n < (int)size; i++)
			n += snprintf(line + n, size - (size_t)n, "%s%s",
				      i ? " " : "; also ",
				      ((char **)p.aliases.items)[i]);
	}
	gpu_profile_free(&p);
	return r;
}

static int describe_storage(const char *name, char *line, size_t size,
			    struct err *err)
{
	struct storage_profile *p;
	int r = storage_profile_load(name, &p, err);
	const struct storage_class *read;

	if (r < 0)
		return r;
	read = &p->op[STORAGE_READ];
	if (!profile_is_path(name) && strcmp(p->name, name))
		r = err_set(err, -EINVAL,
			    "%s: its 'name' is '%s', unlike the file's name",
			    name, p->name);
	snprintf(line, size, "a read takes %.4g ms on average",
		 (dist_time_mean(&read->occupancy) +
		  dist_time_mean(&read->latency) + dist_time_mean(&read->seek) +
		  (double)read->rotation_ns / 2) /
			 1e6);
	storage_profile_free(p);
	return r;
}

static int describe_dataset(const char *name, char *line, size_t size,
			    struct err *err)
{
	struct dataset_profile p;
	int r = dataset_profile_load(name, &p, err);

	if (r == 0 && !profile_is_path(name) && strcmp(p.name, name))
		r = err_set(err, -EINVAL,
			    "%s: its 'name' is '%s', unlike the file's name",
			    name, p.name);
	if (r == 0)
		snprintf(line, size, "%llu %s files, %.0f bytes on average%s",
			 (unsigned long long)p.files, p.format,
			 dataset_profile_mean(&p),
			 p.verified ? "" : " (unverified)");
	dataset_profile_free(&p);
	return r;
}

static int describe_prep(const char *name, char *line, size_t size,
			 struct err *err)
{
	struct prep_profile p;
	int r = prep_profile_load(name, &p, err);

	if (r == 0 && !profile_is_path(name) && strcmp(p.name, name))
		r = err_set(err, -EINVAL,
			    "%s: its 'name' is '%s', unlike the file's name",
			    name, p.name);
	if (r == 0)
		snprintf(line, size, "%.4g ms a sample on average%s%s%s",
			 dist_time_mean(&p.sample) / 1e6,
			 p.per_mb_ns ? ", plus a cost per byte" : "",
			 p.gpu.rows.n ? ", part of it on the GPU" : "",
			 p.verified ? "" : " (unverified)");
	prep_profile_free(&p);
	return r;
}

static int describe_node(const char *name, char *line, size_t size,
			 struct err *err)
{
	struct node_profile p;
	int r = node_profile_load(name, &p, err);

	if (r == 0 && !profile_is_path(name) && strcmp(p.name, name))
		r = err_set(err, -EINVAL,
			    "%s: its 'name' is '%s', unlike the file's name",
			    name, p.name);
	if (r == 0)
		snprintf(line, size, "%" PRIu64 " x %s, %" PRIu64 " cores%s",
			 p.gpus, p.gpu ? p.gpu : "a GPU without a profile",
			 p.cores, p.verified ? "" : " (unverified)");
	node_profile_free(&p);
	return r;
}

static int describe_share(const char *name, char *line, size_t size,
			  struct err *err)
{
	struct share_profile p;
	int r = share_profile_load(name, &p, err);

	if (r == 0 && !profile_is_path(name) && strcmp(p.name, name))
		r = err_set(err, -EINVAL,
			    "%s: its 'name' is '%s', unlike the file's name",
			    name, p.name);
	if (r == 0)
		snprintf(line, size, "speedup of %zu concurrent jobs: %.3g%s",
			 p.rows.n, share_profile_speedup(&p, p.rows.n),
			 p.verified ? "" : " (unverified)");
	share_profile_free(&p);
	return r;
}

static int describe(enum profile_kind kind, const char *name, char *line,
		    size_t size, struct err *err)
{
	switch (kind) {
	case PROFILE_GPU: return describe_gpu(name, line, size, err);
	case PROFILE_STORAGE: return describe_storage(name, line, size, err);
	case PROFILE_DATASET: return describe_dataset(name, line, size, err);
	case PROFILE_PREP: return describe_prep(name, line, size, err);
	case PROFILE_NODE: return describe_node(name, line, size, err);
	case PROFILE_SHARE: return describe_share(name, line, size, err);
	case PROFILE_N_KINDS: break;
	}
	return -EINVAL;
}

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

		if (describe(kind, names[i], line, sizeof(line), &bad) < 0)
			snprintf(line, sizeof(line),
				 "broken: see "
				 "gpemu-profile check");
		fprintf(f, "%-8s %-24s %s\n", profile_kind_name(kind), names[i],
			line);
		json_array_append_new(list, json_bytes(names[i]));
	}
	return r;
}

int profile_tool_list(int argc, char **argv)
{
	static const struct cli_program program = {
		.name = "gpemu-profile list",
		.args = "[KIND]",
		.n_optional = 1,
		.summary = "List the profiles: all, or of one KIND (gpu, "
			   "storage, dataset, prep, node, share).",
		.fields = fields,
	};
	json_auto_t *j = json_object();
	struct options o = { 0 };
	struct err err = { 0 };
	char *kind;
	int r = 0, only = -1;

	cli_parse(&program, argc, argv, &o, &kind);

	_cleanup_(profile_tool_out_close) FILE *f = profile_tool_out(&o.common);

	if (kind && (only = profile_tool_kind(kind, &err)) < 0) {
		fprintf(stderr, "%s: %s\n", program.name, err.text);
		conf_free(fields, &o);
		return EXIT_STATUS_USAGE;
	}
	for (int k = 0; r == 0 && k < PROFILE_N_KINDS; k++)
		if (!kind || k == only)
			r = list_kind((enum profile_kind)k, f, j, &err);
	if (r == 0 && o.common.json)
		r = json_write(j, o.common.json, &err);
	conf_free(fields, &o);
	return r < 0 ? cli_fail(r, &err) : EXIT_STATUS_DONE;
}

/* --- check ------------------------------------------------------------ */

/* Prints one line; returns whether the profile is valid. */
static bool check_one(enum profile_kind kind, const char *name, FILE *f,
		      json_t *j)
{
	struct err err = { 0 };
	char line[256];
	int r = describe(kind, name, line, sizeof(line), &err);

	if (r == 0)
		fprintf(f, "ok   %-8s %s: %s\n", profile_kind_name(kind), name,
			line);
	else
		fprintf(f, "BAD  %-8s %s\n", profile_kind_name(kind),
			err.text[0] ? err.text : strerror(-r));
	json_array_append_new(j,
			      json_pack("{s:s,s:o,s:b,s:o}", "kind",
					profile_kind_name(kind), "name",
					json_bytes(name), "ok", r == 0, "text",
					json_bytes(r == 0 ? line : err.text)));
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

int profile_tool_check(int argc, char **argv)
{
	_cleanup_free_ char **files = calloc((size_t)argc + 1, sizeof(*files));
	const struct cli_program program = {
		.name = "gpemu-profile check",
		.args = "[FILE...]",
		.n_optional = (size_t)argc,
		.summary = "Read every profile of the database, or the given "
			   "files, and report errors.",
		.fields = fields,
	};
	json_auto_t *j = json_array();
	struct options o = { 0 };
	struct err err = { 0 };
	int r = 1; /* valid */

	if (!files)
		return cli_fail(-ENOMEM, &err);
	cli_parse(&program, argc, argv, &o, files);

	_cleanup_(profile_tool_out_close) FILE *f = profile_tool_out(&o.common);

	for (size_t i = 0; files[i]; i++)
		r &= check_file(files[i], f, j);
	if (!files[0])
		r = check_all(f, j, &err);
	if (r >= 0 && o.common.json && json_write(j, o.common.json, &err) < 0)
		r = -EIO;
	conf_free(fields, &o);
	if (r < 0)
		return cli_fail(r, &err);
	return r ? EXIT_STATUS_DONE : EXIT_STATUS_FAILED;
}
