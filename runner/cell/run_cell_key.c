/* SPDX-License-Identifier: MIT */
/*
 * The key of a cell: the hash of all its inputs, which identifies its record.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <xxhash.h>

#include "common/util.h"
#include "runner/run/run_identity.h"
#include "runner/cell/run_profiles.h"

static json_t *mounts_json(const struct cell *cell, bool mounted)
{
	json_t *j = json_array();

	for (size_t i = 0; i < cell->n_mounts; i++)
		json_array_append_new(
			j, json_pack("{s:O, s:O?}", "dataset",
				     cell->mounts[i].dataset, "fs",
				     mounted ? cell->mounts[i].fs : NULL));
	return j;
}

static json_t *jobs_json(const struct cell *cell)
{
	json_t *j = json_array();

	for (size_t i = 0; i < cell->n_jobs; i++) {
		const struct cell_job *job = &cell->jobs[i];
		bool exec = cell_is_exec(job);

		json_array_append_new(
			j, json_pack("{s:I, s:I, s:O?, s:O?, s:O}", "mount",
				     (json_int_t)job->mount, "start",
				     (json_int_t)job->start_ns, "train",
				     exec ? NULL : job->train, "exec",
				     exec ? job->exec : NULL, "env", job->env));
	}
	return j;
}

/* Copy the hashes of {NAME: {hash}} into `to`, by name. */
static void add_hashes(json_t *to, const json_t *files)
{
	const char *name;
	json_t *one;

	json_object_foreach ((json_t *)files, name, one)
		json_object_set(to, name, json_object_get(one, "hash"));
}

/* The network that --network asks for between its mounts; NULL: any. */
static const char *network_of(const struct workload *w, bool mounted,
			      const struct cell *cell)
{
	bool peers = false;

	for (size_t i = 0; mounted && i < cell->n_mounts; i++)
		peers |= cell_has_peers(&cell->mounts[i]);
	return peers && !cell_is_simulated(cell) ? w->network : NULL;
}

/* All inputs of a run, and nothing else. */
static int hash_cell(const struct workload *w, bool mounted, struct cell *cell)
{
	json_auto_t *profiles = profiles_of(w, cell, mounted);
	json_auto_t *files = identity_of(w, cell, mounted);
	json_auto_t *hashes = json_object(), *contents = json_object();
	json_auto_t *j = NULL;
	_cleanup_free_ char *text = NULL;

	add_hashes(hashes, profiles);
	add_hashes(contents, files);
	j = json_pack(
		"{s:o, s:o, s:f, s:I, s:I, s:O, s:O, s:O*, s:O*, s:O*, s:s*}",
		"mounts", mounts_json(cell, mounted), "jobs", jobs_json(cell),
		"time_scale", w->time_scale, "seed", (json_int_t)cell->seed,
		"warmup", (json_int_t)w->warmup, "profiles", hashes, "files",
		contents, "gpud", cell->gpud, "prepd", cell->prepd, "s3",
		cell->s3, "network", network_of(w, mounted, cell));
	text = j && profiles && files
		       ? json_dumps(j, JSON_COMPACT | JSON_SORT_KEYS)
		       : NULL;
	if (!text)
		return -ENOMEM;
	cell->hash = XXH3_64bits(text, strlen(text));
	return 0;
}

/* "lru-35p-async-r1-9f3a01c2" */
static void name_cell(const struct workload *w, struct cell *cell)
{
	char gpus[24] = "";
	char label[80]; /* leaves room for the rest in a 128-byte id */
	char *to = label;

	workload_label(w, cell->point, label, sizeof(label));
	for (const char *c = label; *c; c++) {
		if (*c == ' ')
			continue;
		*to++ = *c == ',' ? '-' : *c == '%' ? 'p' : *c;
		if (!isalnum((unsigned char)to[-1]) && to[-1] != '-')
			to[-1] = '_';
	}
	*to = 0;
	if (w->gpus)
		snprintf(gpus, sizeof(gpus), "-g%" PRIu64, w->gpus);
	snprintf(cell->id, sizeof(cell->id), "%s%s-r%zu-%08x", label, gpus,
		 cell->repetition + 1, (unsigned)(cell->hash & UINT32_MAX));
}

int workload_cell(const struct workload *w, size_t index, bool mounted,
		  struct cell *ret)
{
	int r = workload_configure(w, index, ret);

	if (r < 0)
		return r;
	if (w->hashes)
		ret->hash = w->hashes[index];
	else
		/* a simulation has the mounts in itself */
		r = hash_cell(w, mounted || cell_is_simulated(ret), ret);
	if (r < 0)
		cell_free(ret);
	else
		name_cell(w, ret);
	return r;
}
