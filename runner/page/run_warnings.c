/* SPDX-License-Identifier: MIT */
#include "runner/page/run_warnings.h"

#include <string.h>

#include "common/json.h"
#include "runner/cell/run_disturb.h"

static json_t *warning(json_t *all, const char *kind, const char *what)
{
	json_t *one;
	size_t i;

	json_array_foreach (all, i, one)
		if (!strcmp(json_get_text(one, "kind"), kind) &&
		    !strcmp(json_get_text(one, "what"), what))
			return one;
	one = json_pack("{s:s, s:s, s:i, s:f}", "kind", kind, "what", what,
			"runs", 0, "degree", -1.);
	json_array_append_new(all, one);
	return one;
}

/* Another run with this limit or sign; the worst one gives the reason. */
static void count(json_t *one, const json_t *cell, double degree,
		  const char *why)
{
	json_int_t runs = json_integer_value(json_object_get(one, "runs"));
	const char *last = json_get_text(one, "last"),
		   *id = json_get_text(cell, "id");

	/* several jobs of a run may have reached it */
	if (strcmp(last, id))
		json_add_integer(one, "runs", runs + 1);
	json_object_set(one, "last", json_object_get(cell, "id"));
	if (degree <= json_real_value(json_object_get(one, "degree")))
		return;
	json_add_real(one, "degree", degree);
	json_add_text(one, "why", why);
	json_object_set(one, "worst", json_object_get(cell, "id"));
}

static void add_limits(json_t *all, const json_t *record)
{
	const json_t *cell = json_object_get(record, "cell"), *one;
	size_t i;

	json_array_foreach (json_object_get(cell, "rig"), i, one)
		count(warning(all, "rig", json_get_text(one, "limit")), cell,
		      json_get_number(one, "factor"),
		      json_get_text(one, "why"));
}

static void add_signs(json_t *all, const json_t *record)
{
	const json_t *cell = json_object_get(record, "cell"), *one;
	size_t i;

	json_array_foreach (json_object_get(cell, "disturbance"), i, one)
		count(warning(all, "disturbed", json_get_text(one, "sign")),
		      cell, disturb_share(record), json_get_text(one, "seen"));
}

/* A sample's name in its dataset, whose path was that of a mount. */
static const char *sample_of(const json_t *job, const json_t *bad)
{
	const char *path = json_get_text(bad, "sample");
	const char *root =
		json_get_text(json_object_get(job, "config"), "data");
	size_t n = strlen(root);

	return n && !strncmp(path, root, n) && path[n] == '/' ? path + n + 1
							      : path;
}

/* Samples that a gpemu-train could not use. */
static void add_samples(json_t *all, const json_t *cell, const json_t *job)
{
	const json_t *totals = json_object_get(job, "totals");
	const json_t *first =
		json_array_get(json_object_get(job, "bad_samples"), 0);
	json_int_t bad =
		json_integer_value(json_object_get(totals, "failed_samples"));
	json_int_t good =
		json_integer_value(json_object_get(totals, "samples"));
	char why[1024];

	if (bad == 0)
		return;
	snprintf(why, sizeof(why),
		 "%" JSON_INTEGER_FORMAT " samples could not be used, beside "
		 "%" JSON_INTEGER_FORMAT " that were; the first: %s: %s",
		 bad, good, sample_of(job, first),
		 json_get_text(first, "reason"));
	count(warning(all, "data", "unusable samples"), cell, (double)bad, why);
}

/* What a job's dataset was found to be, as far as its user should know. */
static void add_notes(json_t *all, const json_t *cell, const json_t *job)
{
	const json_t *data = json_object_get(job, "dataset"), *one;
	size_t i;

	json_array_foreach (json_object_get(data, "notes"), i, one)
		if (json_is_string(json_object_get(one, "shown")))
			count(warning(all, "data", json_get_text(one, "what")),
			      cell, json_get_number(one, "n"),
			      json_get_text(one, "shown"));
}

/* What a job's GPU profile does not say. */
static void add_gpu(json_t *all, const json_t *cell, const json_t *job)
{
	const char *notice =
		json_get_text(json_object_get(job, "profile"), "notice");

	if (notice[0])
		count(warning(all, "gpu", "precision"), cell, 1, notice);
}

/* Of each job, or of the only one. */
static void add_data(json_t *all, const json_t *record)
{
	const json_t *cell = json_object_get(record, "cell");
	const json_t *jobs = json_object_get(record, "jobs"), *job;
	const char *name;

	add_notes(all, cell, record);
	add_gpu(all, cell, record);
	if (!jobs)
		add_samples(all, cell, record);
	json_object_foreach ((json_t *)jobs, name, job) {
		add_samples(all, cell, job);
		add_notes(all, cell, job);
		add_gpu(all, cell, job);
	}
}

json_t *warnings_json(const json_t *records)
{
	json_t *all = json_array(), *one;
	json_int_t n = (json_int_t)json_array_size(records);
	size_t i;

	json_array_foreach ((json_t *)records, i, one)
		add_data(all, one);
	json_array_foreach ((json_t *)records, i, one)
		add_limits(all, one);
	json_array_foreach ((json_t *)records, i, one)
		add_signs(all, one);
	json_array_foreach (all, i, one) {
		json_object_del(one, "last");
		json_object_del(one, "degree");
		json_add_integer(one, "of_runs", n);
	}
	return all;
}

/* "disturbed by other load, cpu: " */
static const char *title(const json_t *one)
{
	const char *kind = json_get_text(one, "kind");

	return !strcmp(kind, "rig")    ? "limit of the testbed, "
	       : !strcmp(kind, "data") ? "the dataset, "
	       : !strcmp(kind, "gpu")  ? "the GPU, "
				       : "disturbed by other load, ";
}

void warnings_print(const json_t *warnings, FILE *f)
{
	const json_t *one;
	size_t i;

	json_array_foreach ((json_t *)warnings, i, one)
		fprintf(f,
			"WARN  %s%s: %" JSON_INTEGER_FORMAT
			" of %" JSON_INTEGER_FORMAT " runs, worst %s: %s\n",
			title(one), json_get_text(one, "what"),
			json_integer_value(json_object_get(one, "runs")),
			json_integer_value(json_object_get(one, "of_runs")),
			json_get_text(one, "worst"), json_get_text(one, "why"));
}

void warnings_mark(json_t *warnings)
{
	json_t *one;
	size_t i;

	json_array_foreach (warnings, i, one)
		json_add_text(one, "title", title(one));
}
