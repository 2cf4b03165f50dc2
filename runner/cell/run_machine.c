/* SPDX-License-Identifier: MIT */
#include "runner/cell/run_machine.h"

#include <errno.h>
#include <string.h>

#include "common/util.h"
#include "emu/node/profile_node.h"
#include "emu/profile/profile.h"
#include "emu/profile/profile_gpu.h"
#include "emu/profile/variant.h"

const char *config_text(const struct workload *w, const json_t *config,
			const char *program, const char *key)
{
	const json_t *v = json_object_get(config, key);

	if (!v)
		v = json_object_get(json_object_get(w->defaults, program), key);
	return json_is_string(v) ? json_string_value(v) : "";
}

double config_number(const struct workload *w, const json_t *config,
		     const char *program, const char *key)
{
	double v;

	return workload_number(config_text(w, config, program, key), &v) < 0
		       ? 0
		       : v;
}

char *machine_gpu(const struct workload *w, const struct cell *cell,
		  const struct cell_job *job)
{
	const char *node = config_text(w, job->train, "train", "node");
	const char *gpu = cell->gpud
				  ? config_text(w, cell->gpud, "gpud", "gpu")
				  : config_text(w, job->train, "train", "gpu");
	struct node_profile p = { 0 };
	char *name;

	if (!gpu[0] && node[0])
		node_profile_load(node, &p, NULL);
	name = strdup(gpu[0] ? gpu : node_gpu(&p));
	node_profile_free(&p);
	return name;
}

/* --- checks ----------------------------------------------------------- */

static int check_synth(const struct workload *w, const struct conf_node *d,
		       struct err *err)
{
	const struct conf_node *synth = d ? conf_node_get(d, "synth") : NULL;
	struct err why = { 0 };

	/* gpemu-fs checks the options of synth:records, which has no profile */
	if (!synth || !strcmp(synth->value, "records") ||
	    profile_check_dataset(&synth->value, &why) == 0)
		return 0;
	return conf_node_error(synth, w->path, err, "%s", why.text);
}

/* Where the file sets `key` of a job; NULL: nowhere. */
static const struct conf_node *place_of(const struct workload *w,
					const struct cell *cell, size_t job,
					const char *key)
{
	struct setting what = { .program = RUN_TRAIN, .key = key };

	return workload_given(w, cell->point, &what, job);
}

/* The last GPU looked up: consecutive points often share it. */
struct known_gpu {
	char *name;
	struct gpu_profile profile;
};

static int load_gpu(struct known_gpu *known, const char *name, struct err *err)
{
	if (known->name && !strcmp(known->name, name))
		return 0;
	free(known->name);
	gpu_profile_free(&known->profile);
	*known = (struct known_gpu){ .name = strdup(name) };
	return known->name ? gpu_profile_load(name, &known->profile, err)
			   : err_set(err, -ENOMEM, "out of memory");
}

static const struct gpu_model *find_model(const struct workload *w,
					  const json_t *train,
					  const struct gpu_profile *p,
					  struct err *err)
{
	return variant_find(p, config_text(w, train, "train", "model"),
			    (uint64_t)config_number(w, train, "train",
						    "sequence_length"),
			    config_text(w, train, "train", "precision"), err);
}

static int check_job(const struct workload *w, const struct cell *cell,
		     size_t job, struct known_gpu *known, struct err *err)
{
	const char *model =
		config_text(w, cell->jobs[job].train, "train", "model");
	const struct conf_node *place;
	_cleanup_free_ char *gpu = NULL;
	struct err why = { 0 };
	int r;

	/* a rate alone needs no table; with a GPU gpemu-train says it all */
	if (!model[0] ||
	    config_number(w, cell->jobs[job].train, "train", "gpu_rate") > 0)
		return 0;
	gpu = machine_gpu(w, cell, &cell->jobs[job]);
	r = gpu ? load_gpu(known, gpu, err) : -ENOMEM;
	if (r < 0 ||
	    find_model(w, cell->jobs[job].train, &known->profile, &why))
		return r;
	place = place_of(w, cell, job, "model");
	if (!place)
		place = place_of(w, cell, job, "gpu");
	return place ? conf_node_error(place, w->path, err, "%s", why.text)
		     : err_set(err, -EINVAL, "%s: %s", w->path, why.text);
}

int machine_check(const struct workload *w, struct err *err)
{
	const struct mount_spec *mounts = w->mounts.items;
	struct known_gpu known = { 0 };
	int r = check_synth(w, w->dataset, err);

	for (size_t i = 0; r == 0 && i < w->mounts.n; i++)
		r = check_synth(w, mounts[i].dataset, err);
	for (size_t i = 0; r == 0 && i < w->n_points; i++) {
		_cleanup_(cell_free) struct cell cell = { 0 };

		r = workload_configure(w, i, &cell);
		for (size_t k = 0; r == 0 && k < cell.n_jobs; k++)
			if (!cell_is_exec(&cell.jobs[k]))
				r = check_job(w, &cell, k, &known, err);
	}
	free(known.name);
	gpu_profile_free(&known.profile);
	return r < 0 ? err_set(err, r, "%s", strerror(-r)) : 0;
}
