/* SPDX-License-Identifier: MIT */
#include "workloads/run_profiles.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <xxhash.h>

#include "common/util.h"
#include "emu/profile.h"
#include "workloads/run_dataset.h"

static int hash_file(const char *path, char hash[17])
{
	_cleanup_fclose_ FILE *f = fopen(path, "re");
	XXH3_state_t *state = f ? XXH3_createState() : NULL;
	char buf[8192];
	size_t n;

	if (!state)
		return -ENOMEM;
	XXH3_64bits_reset(state);
	while ((n = fread(buf, 1, sizeof(buf), f)))
		XXH3_64bits_update(state, buf, n);
	snprintf(hash, 17, "%016" PRIx64, (uint64_t)XXH3_64bits_digest(state));
	XXH3_freeState(state);
	return 0;
}

static json_t *profile_json(const char *path)
{
	_cleanup_conf_node_ struct conf_node *root = NULL;
	const struct conf_node *source = NULL;
	char hash[17];

	if (hash_file(path, hash) < 0)
		return NULL;
	if (conf_tree_load(path, &root, NULL) == 0)
		source = conf_node_get(root, "source");
	return json_pack("{s:s, s:s, s:s}", "file", path, "hash", hash,
			 "source",
			 source && source->kind == CONF_KIND_SCALAR
				 ? source->value
				 : "");
}

/* Put "kind/name" of `all` into `to`; with `read`, look it up for `all`. */
static int note(json_t *all, json_t *to, enum profile_kind kind,
		const json_t *name, bool read)
{
	_cleanup_free_ char *path = NULL;
	json_t *known;
	char key[200];

	if (!json_is_string(name))
		return 0;
	snprintf(key, sizeof(key), "%s/%s", profile_kind_name(kind),
		 json_string_value(name));
	known = json_object_get(all, key);
	if (known)
		return to == all ? 0 : json_object_set(to, key, known);
	if (!read ||
	    profile_path(kind, json_string_value(name), &path, NULL) < 0)
		return 0;
	return json_object_set_new(all, key, profile_json(path)) < 0 ? -ENOMEM
								     : 0;
}

static const json_t *get(const json_t *config, const json_t *defaults,
			 const char *program, const char *key)
{
	const json_t *v = json_object_get(config, key);

	return v ? v : json_object_get(json_object_get(defaults, program), key);
}

static int note_cell(json_t *all, json_t *to, const struct cell *cell,
		     const json_t *defaults, bool mounted, bool read)
{
	int r = 0;

	if (cell->gpud)
		r = note(all, to, PROFILE_GPU,
			 get(cell->gpud, defaults, "gpud", "gpu"), read);
	if (r == 0 && cell->gpud)
		r = note(all, to, PROFILE_SHARE,
			 json_object_get(cell->gpud, "speedup"), read);
	for (size_t i = 0; r == 0 && i < cell->n_mounts; i++) {
		const struct cell_mount *m = &cell->mounts[i];

		r = note(all, to, PROFILE_DATASET,
			 json_object_get(m->dataset,
					 dataset_is_synth(m->dataset)
						 ? "synth"
						 : "dataset"),
			 read);
		if (r == 0 && mounted)
			r = note(all, to, PROFILE_STORAGE,
				 get(m->fs, defaults, "fs", "storage"), read);
	}
	for (size_t i = 0; r == 0 && i < cell->n_jobs; i++) {
		const json_t *train = cell->jobs[i].train;
		const json_t *prep = get(train, defaults, "train", "prep");

		if (cell_is_exec(&cell->jobs[i]))
			continue;
		if (!cell->gpud)
			r = note(all, to, PROFILE_GPU,
				 get(train, defaults, "train", "gpu"), read);
		if (r == 0)
			r = note(all, to, PROFILE_NODE,
				 json_object_get(train, "node"), read);
		if (r == 0 && json_is_string(prep) &&
		    !strcmp(json_string_value(prep), "emulated"))
			r = note(all, to, PROFILE_PREP,
				 get(train, defaults, "train", "prep_profile"),
				 read);
	}
	return r;
}

int profiles_collect(struct workload *w, const json_t *defaults,
		     struct err *err)
{
	json_t *all = json_object();
	int r = all ? 0 : -ENOMEM;

	w->defaults = json_incref((json_t *)defaults);
	for (size_t i = 0; r == 0 && i < w->n_points; i++) {
		struct cell cell;

		r = workload_cell(w, i, true, &cell);
		if (r < 0)
			break;
		r = note_cell(all, all, &cell, defaults, true, true);
		cell_free(&cell);
	}
	w->profiles = all;
	return r < 0 ? err_set(err, -ENOMEM, "out of memory") : 0;
}

json_t *profiles_of(const struct workload *w, const struct cell *cell,
		    bool mounted)
{
	json_t *j = json_object();

	if (w->profiles && j &&
	    note_cell(w->profiles, j, cell, w->defaults, mounted, false) < 0) {
		json_decref(j);
		return NULL;
	}
	return j;
}
