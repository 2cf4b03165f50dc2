/* SPDX-License-Identifier: MIT */
#include "runner/cell/run_profiles.h"

#include <errno.h>
#include <string.h>

#include "common/json.h"
#include "common/plugin.h"
#include "common/util.h"
#include "emu/profile/profile.h"
#include "emu/profile/profile_dataset.h"
#include "emu/profile/profile_gpu.h"
#include "emu/node/profile_node.h"
#include "emu/profile/profile_prep.h"
#include "emu/profile/profile_share.h"
#include "emu/profile/profile_storage.h"
#include "fs/cache/tier.h"
#include "runner/run/run_dataset.h"
#include "runner/run/run_identity.h"
#include "runner/cell/run_machine.h"

static json_t *profile_json(const char *path, const char *hash)
{
	_cleanup_conf_node_ struct conf_node *root = NULL;
	const struct conf_node *source = NULL;

	if (conf_tree_load(path, &root, NULL) == 0)
		source = conf_node_get(root, "source");
	return json_pack("{s:o, s:s, s:s}", "file", json_bytes(path), "hash",
			 hash, "source",
			 source && source->kind == CONF_KIND_SCALAR
				 ? source->value
				 : "");
}

/* Can the programs parse it? */
static int try_profile(enum profile_kind kind, const char *path,
		       struct err *err)
{
	union {
		struct gpu_profile gpu;
		struct storage_profile *storage;
		struct dataset_profile dataset;
		struct prep_profile prep;
		struct node_profile node;
		struct share_profile share;
	} p = { 0 };
	int r = -EINVAL;

#define TRY(KIND, kind, member)                              \
	case PROFILE_##KIND:                                 \
		r = kind##_profile_load(path, &p.kind, err); \
		kind##_profile_free(member);                 \
		break
	switch (kind) {
		TRY(GPU, gpu, &p.gpu);
		TRY(STORAGE, storage, p.storage);
		TRY(DATASET, dataset, &p.dataset);
		TRY(PREP, prep, &p.prep);
		TRY(NODE, node, &p.node);
		TRY(SHARE, share, &p.share);
	default: break;
	}
#undef TRY
	return r;
}

/* Puts the profiles that a cell names into `to`. */
struct noting {
	const struct workload *w;
	json_t *all; /* all known ones */
	json_t *to;  /* or `all` itself: what is not known is looked up */
	struct err *err;
};

/* "kind/name". */
static int note(const struct noting *n, enum profile_kind kind,
		const char *name)
{
	_cleanup_free_ char *path = NULL;
	json_t *known;
	char key[200], hash[17];
	int r;

	if (!name || !name[0])
		return 0;
	snprintf(key, sizeof(key), "%s/%s", profile_kind_name(kind), name);
	known = json_object_get(n->all, key);
	if (known)
		return n->to == n->all ? 0 : json_object_set(n->to, key, known);
	if (n->to != n->all || profile_path(kind, name, &path, NULL) < 0)
		return 0;
	r = identity_hash(path, hash);
	if (r < 0)
		return err_set(n->err, r, "%s profile %s: %s",
			       profile_kind_name(kind), path, strerror(-r));
	r = try_profile(kind, path, n->err);
	if (r < 0)
		return r;
	r = json_object_set_new(n->all, key, profile_json(path, hash));
	return r < 0 ? err_set(n->err, -ENOMEM, "out of memory") : 0;
}

/* gpemu-fs has checked the text. */
static int any_storage(const void *storage, struct err *err)
{
	(void)storage;
	(void)err;
	return 0;
}

static int note_tiers(const struct noting *n, const json_t *fs)
{
	json_t *texts = json_object_get(fs, "tier");
	struct tiers t = { 0 };
	int r = 0;

	if (json_is_string(texts))
		tiers_parse(json_string_value(texts), false, any_storage, &t,
			    NULL);
	for (size_t i = 0; i < json_array_size(texts); i++)
		tiers_parse(json_string_value(json_array_get(texts, i)), false,
			    any_storage, &t, NULL);
	for (size_t i = 0; r == 0 && i < t.n; i++)
		r = note(n, PROFILE_STORAGE, t.v[i].storage);
	tiers_fini(&t);
	return r;
}

/* The profile that `key` of the configuration names, of that kind. */
static int note_key(const struct noting *n, enum run_program program,
		    const json_t *config, const char *key, const json_t *kind)
{
	const char *name = json_string_value(kind);
	int r = name ? profile_kind_find(name, n->err)
		     : err_set(n->err, -EINVAL, "not the name of a kind");

	if (r >= 0)
		return note(n, (enum profile_kind)r,
			    config_text(n->w, config, run_program_word(program),
					key));
	err_prefix(n->err, "%s --list profiles: %s", run_program_name(program),
		   key);
	return r;
}

/* Keys whose value is the name of a profile, as its program says. */
static int note_keys(const struct noting *n, enum run_program program,
		     const json_t *config)
{
	json_t *all = json_object_get(n->w->defaults, "profiles"), *kind;
	const char *key;
	int r = 0;

	json_object_foreach (json_object_get(all, run_program_word(program)),
			     key, kind) {
		r = note_key(n, program, config, key, kind);
		if (r < 0)
			break;
	}
	if (r == 0 && (program == RUN_FS || program == RUN_S3))
		r = note_tiers(n, config);
	return r;
}

static int note_mount(const struct noting *n, const struct cell_mount *m,
		      bool mounted)
{
	const char *key = dataset_is_synth(m->dataset) ? "synth" : "dataset";
	int r = note(n, PROFILE_DATASET,
		     json_string_value(json_object_get(m->dataset, key)));

	return r == 0 && mounted ? note_keys(n, RUN_FS, m->fs) : r;
}

static int note_prep(const struct noting *n, const json_t *train)
{
	if (config_text(n->w, train, "train", "prep_profile")[0] ||
	    !plugin_is(config_text(n->w, train, "train", "prep"), "emulated"))
		return 0;
	return note(n, PROFILE_PREP, PREP_DEFAULT);
}

static int note_job(const struct noting *n, const struct cell *cell,
		    const struct cell_job *job)
{
	_cleanup_free_ char *gpu = machine_gpu(n->w, cell, job);
	int r = gpu ? note(n, PROFILE_GPU, gpu) : -ENOMEM;

	if (r == 0)
		r = note_keys(n, RUN_TRAIN, job->train);
	return r == 0 ? note_prep(n, job->train) : r;
}

/* What time slicing costs is by default that of the GPU. */
static int note_slicing(const struct noting *n, const json_t *gpud)
{
	const char *name = config_text(n->w, gpud, "gpud", "slicing");
	struct share_profile p = { 0 };
	struct gpu_profile gpu;
	int r;

	if (strcmp(name, "auto") != 0)
		return 0;
	/* what cannot be loaded, gpemu-gpud reports */
	r = gpu_profile_load_head(config_text(n->w, gpud, "gpud", "gpu"), &gpu,
				  NULL);
	if (r == 0)
		r = share_profile_of_gpu(gpu.name, &p, NULL);
	r = r == 1 ? note(n, PROFILE_SHARE, p.name) : 0;
	share_profile_free(&p);
	gpu_profile_free(&gpu);
	return r;
}

static int note_cell(const struct noting *n, const struct cell *cell,
		     bool mounted)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < RUN_SERVERS; i++)
		if (cell->servers[i])
			r = note_keys(n, RUN_GPUD + i, cell->servers[i]);
	if (r == 0 && cell->gpud)
		r = note_slicing(n, cell->gpud);
	for (size_t i = 0; r == 0 && i < cell->n_mounts; i++)
		r = note_mount(n, &cell->mounts[i], mounted);
	for (size_t i = 0; r == 0 && i < cell->n_jobs; i++)
		if (!cell_is_exec(&cell->jobs[i]))
			r = note_job(n, cell, &cell->jobs[i]);
	return r;
}

int profiles_collect(struct workload *w, const json_t *defaults,
		     struct err *err)
{
	json_t *all = json_object();
	const struct noting n = { w, all, all, err };
	int r = all ? 0 : err_set(err, -ENOMEM, "out of memory");

	w->defaults = json_incref((json_t *)defaults);
	for (size_t i = 0; r == 0 && i < w->n_points; i++) {
		_cleanup_(cell_free) struct cell cell = { 0 };

		r = workload_configure(w, i, &cell);
		if (r == 0)
			r = note_cell(&n, &cell, true);
	}
	w->profiles = all;
	return r < 0 ? err_set(err, r, "%s", strerror(-r)) : 0;
}

json_t *profiles_of(const struct workload *w, const struct cell *cell,
		    bool mounted)
{
	json_t *j = json_object();
	const struct noting n = { w, w->profiles, j, NULL };

	if (w->profiles && j && note_cell(&n, cell, mounted) < 0) {
		json_decref(j);
		return NULL;
	}
	return j;
}
