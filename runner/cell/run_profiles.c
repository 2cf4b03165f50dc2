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

/* Put "kind/name" of `all` into `to`; with `read`, look it up for `all`. */
static int note(json_t *all, json_t *to, enum profile_kind kind,
		const char *name, bool read, struct err *err)
{
	_cleanup_free_ char *path = NULL;
	json_t *known;
	char key[200], hash[17];
	int r;

	if (!name || !name[0])
		return 0;
	snprintf(key, sizeof(key), "%s/%s", profile_kind_name(kind), name);
	known = json_object_get(all, key);
	if (known)
		return to == all ? 0 : json_object_set(to, key, known);
	if (!read || profile_path(kind, name, &path, NULL) < 0)
		return 0;
	r = identity_hash(path, hash);
	if (r < 0)
		return err_set(err, r, "%s profile %s: %s",
			       profile_kind_name(kind), path, strerror(-r));
	r = try_profile(kind, path, err);
	if (r < 0)
		return r;
	r = json_object_set_new(all, key, profile_json(path, hash));
	return r < 0 ? err_set(err, -ENOMEM, "out of memory") : 0;
}

/* gpemu-fs has checked the text. */
static int any_storage(const void *storage, struct err *err)
{
	(void)storage;
	(void)err;
	return 0;
}

static int note_tiers(json_t *all, json_t *to, const json_t *fs, bool read,
		      struct err *err)
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
		r = note(all, to, PROFILE_STORAGE, t.v[i].storage, read, err);
	tiers_fini(&t);
	return r;
}

/* Of a gpemu-fs or, as they are called there, gpemu-s3. */
static int note_storage(json_t *all, json_t *to, const struct workload *w,
			const json_t *config, const char *program, bool read,
			struct err *err)
{
	int r = note(all, to, PROFILE_STORAGE,
		     config_text(w, config, program, "storage"), read, err);

	return r == 0 ? note_tiers(all, to, config, read, err) : r;
}

static int note_mount(json_t *all, json_t *to, const struct workload *w,
		      const struct cell_mount *m, bool mounted, bool read,
		      struct err *err)
{
	const char *key = dataset_is_synth(m->dataset) ? "synth" : "dataset";
	int r = note(all, to, PROFILE_DATASET,
		     json_string_value(json_object_get(m->dataset, key)), read,
		     err);

	return r == 0 && mounted
		       ? note_storage(all, to, w, m->fs, "fs", read, err)
		       : r;
}

static int note_prep(json_t *all, json_t *to, const struct workload *w,
		     const json_t *train, bool read, struct err *err)
{
	const char *name = config_text(w, train, "train", "prep_profile");

	if (!plugin_is(config_text(w, train, "train", "prep"), "emulated"))
		return 0;
	return note(all, to, PROFILE_PREP, name[0] ? name : PREP_DEFAULT, read,
		    err);
}

static int note_job(json_t *all, json_t *to, const struct workload *w,
		    const struct cell *cell, const struct cell_job *job,
		    bool read, struct err *err)
{
	_cleanup_free_ char *gpu = machine_gpu(w, cell, job);
	int r = gpu ? note(all, to, PROFILE_GPU, gpu, read, err) : -ENOMEM;

	if (r == 0)
		r = note(all, to, PROFILE_NODE,
			 config_text(w, job->train, "train", "node"), read,
			 err);
	if (r == 0)
		r = note_prep(all, to, w, job->train, read, err);
	if (r == 0)
		r = note(all, to, PROFILE_PREP,
			 config_text(w, job->train, "train", "prep_gpu"), read,
			 err);
	return r;
}

/* What time slicing costs is by default that of the GPU. */
static int note_slicing(json_t *all, json_t *to, const struct workload *w,
			const json_t *gpud, bool read, struct err *err)
{
	const char *name = config_text(w, gpud, "gpud", "slicing");
	struct share_profile p = { 0 };
	struct gpu_profile gpu;
	int r;

	if (strcmp(name, "auto") != 0)
		return note(all, to, PROFILE_SHARE, name, read, err);
	/* what cannot be loaded, gpemu-gpud reports */
	r = gpu_profile_load_head(config_text(w, gpud, "gpud", "gpu"), &gpu,
				  NULL);
	if (r == 0)
		r = share_profile_of_gpu(gpu.name, &p, NULL);
	r = r == 1 ? note(all, to, PROFILE_SHARE, p.name, read, err) : 0;
	share_profile_free(&p);
	gpu_profile_free(&gpu);
	return r;
}

static int note_cell(json_t *all, json_t *to, const struct workload *w,
		     const struct cell *cell, bool mounted, bool read,
		     struct err *err)
{
	int r = 0;

	if (cell->gpud)
		r = note(all, to, PROFILE_GPU,
			 config_text(w, cell->gpud, "gpud", "gpu"), read, err);
	if (r == 0 && cell->gpud)
		r = note(all, to, PROFILE_SHARE,
			 config_text(w, cell->gpud, "gpud", "speedup"), read,
			 err);
	if (r == 0 && cell->gpud)
		r = note_slicing(all, to, w, cell->gpud, read, err);
	if (r == 0 && cell->prepd)
		r = note(all, to, PROFILE_NODE,
			 config_text(w, cell->prepd, "prepd", "nic"), read,
			 err);
	if (r == 0 && cell->s3)
		r = note_storage(all, to, w, cell->s3, "s3", read, err);
	for (size_t i = 0; r == 0 && i < cell->n_mounts; i++)
		r = note_mount(all, to, w, &cell->mounts[i], mounted, read,
			       err);
	for (size_t i = 0; r == 0 && i < cell->n_jobs; i++)
		if (!cell_is_exec(&cell->jobs[i]))
			r = note_job(all, to, w, cell, &cell->jobs[i], read,
				     err);
	return r;
}

int profiles_collect(struct workload *w, const json_t *defaults,
		     struct err *err)
{
	json_t *all = json_object();
	int r = all ? 0 : err_set(err, -ENOMEM, "out of memory");

	w->defaults = json_incref((json_t *)defaults);
	for (size_t i = 0; r == 0 && i < w->n_points; i++) {
		struct cell cell;

		r = workload_configure(w, i, &cell);
		if (r < 0) {
			r = err_set(err, r, "out of memory");
			break;
		}
		r = note_cell(all, all, w, &cell, true, true, err);
		cell_free(&cell);
	}
	w->profiles = all;
	return r;
}

json_t *profiles_of(const struct workload *w, const struct cell *cell,
		    bool mounted)
{
	json_t *j = json_object();

	if (w->profiles && j &&
	    note_cell(w->profiles, j, w, cell, mounted, false, NULL) < 0) {
		json_decref(j);
		return NULL;
	}
	return j;
}
