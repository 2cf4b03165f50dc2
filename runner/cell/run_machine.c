/* SPDX-License-Identifier: MIT */
#include "runner/cell/run_machine.h"

#include <errno.h>
#include <string.h>

#include "common/plugin.h"
#include "common/util.h"
#include "emu/profile/profile.h"
#include "emu/profile/profile_prep.h"
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

bool config_flag(const struct workload *w, const json_t *config,
		 const char *program, const char *key)
{
	const char *s = config_text(w, config, program, key);

	return !strcmp(s, "true") || !strcmp(s, "on") || !strcmp(s, "yes");
}

/* The virtual cores of the workers of its service. */
static double service_cores(const struct workload *w, const struct cell *cell)
{
	double n = config_number(w, cell->prepd, "prepd", "cores");

	if (n < 1)
		n = config_number(w, cell->prepd, "prepd", "threads");
	if (n < 1)
		n = (double)sysconf(_SC_NPROCESSORS_ONLN);
	return n * (double)cell_prepd_workers(cell->prepd);
}

/* The transforms of a job may run in its service, or in both. */
static double cores_with_service(const struct workload *w,
				 const struct cell *cell,
				 const struct cell_job *job, double own)
{
	const char *offload = config_text(w, job->train, "train", "offload");

	if (!cell->prepd || !cell_has_service(job) || !strcmp(offload, "none"))
		return own;
	return service_cores(w, cell) +
	       (offload[0] && strcmp(offload, "all") ? own : 0);
}

void machine_of(const struct workload *w, const struct cell *cell,
		const struct cell_job *job, struct machine *ret)
{
	const char *node = config_text(w, job->train, "train", "node");
	const char *loader = config_text(w, job->train, "train", "loader");
	bool owns_batches = plugin_is(loader, "sync") ||
			    plugin_is(loader, "mmap");
	struct machine m = {
		.gpus = config_number(w, job->train, "train", "gpus"),
		.nodes =
			MAX(config_number(w, job->train, "train", "world_size"),
			    (double)job->nodes),
		.workers = config_number(w, job->train, "train", "workers"),
		.cores = config_number(w, job->train, "train", "cores"),
		.depth = config_number(w, job->train, "train", "queue_depth"),
	};
	bool emulated = plugin_is(config_text(w, job->train, "train", "prep"),
				  "emulated");

	if (node[0])
		node_profile_load(node, &m.node, NULL);
	m.gpu = cell->gpud ? config_text(w, cell->gpud, "gpud", "gpu")
			   : config_text(w, job->train, "train", "gpu");
	if (!m.gpu[0])
		m.gpu = m.node.gpu ? m.node.gpu : GPU_DEFAULT;
	if (emulated)
		m.prep = config_text(w, job->train, "train", "prep_profile");
	if (m.prep && !m.prep[0])
		m.prep = PREP_DEFAULT;
	m.prep_time = config_text(w, job->train, "train", "prep_time");
	if (!emulated || !m.prep_time[0])
		m.prep_time = NULL;
	m.prep_gpu = config_text(w, job->train, "train", "prep_gpu");
	if (!m.prep_gpu[0])
		m.prep_gpu = m.prep;
	if (m.gpus < 1)
		m.gpus = MAX((double)m.node.gpus, 1);
	if (emulated && m.cores < 1 && m.workers < 1)
		m.cores = (double)m.node.cores;
	if (m.workers < 1 && owns_batches)
		m.workers = m.cores;
	if (m.workers < 1)
		m.workers = (double)sysconf(_SC_NPROCESSORS_ONLN);
	if (emulated && m.cores < 1)
		m.cores = m.workers;
	m.cores = cores_with_service(w, cell, job, m.cores);
	if (owns_batches)
		m.depth = m.workers;
	*ret = m;
}

void machine_fini(struct machine *m)
{
	node_profile_free(&m->node);
}

uint64_t machine_prep_gpu_ns(const struct machine *m, uint64_t batch)
{
	struct prep_profile p = { 0 };
	uint64_t ns = 0;

	if (m->prep_gpu && prep_profile_load(m->prep_gpu, &p, NULL) == 0 &&
	    p.gpu.rows.n)
		ns = prep_profile_gpu_ns(&p, batch);
	prep_profile_free(&p);
	return ns;
}

/* --- checks ----------------------------------------------------------- */

static int check_synth(const struct workload *w, const struct conf_node *d,
		       struct err *err)
{
	const struct conf_node *synth = d ? conf_node_get(d, "synth") : NULL;
	struct err why = { 0 };

	/* gpemu-fs checks the options of synth:records, which has no profile */
	if (!synth || !strcmp(synth->value, "records") ||
	    profile_check(PROFILE_DATASET, &synth->value, &why) == 0)
		return 0;
	return conf_node_error(synth, w->path, err, "%s", why.text);
}

/* Where the file sets `key` of a job; NULL: nowhere. */
static const struct conf_node *place_of(const struct workload *w,
					const struct cell *cell, size_t job,
					const char *key)
{
	const struct job_spec *specs = w->jobs.items;
	const struct conf_node *maps[] = { w->base.train,
					   w->jobs.n ? specs[job].train
						     : NULL };
	const char *name = cell->jobs[job].name;
	const struct conf_node *found = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(maps); i++)
		if (maps[i] && conf_node_get(maps[i], key))
			found = conf_node_get(maps[i], key);
	for (size_t a = 0; a < w->n_axes; a++) {
		const struct axis_point *p = workload_at(w, cell->point, a);

		for (size_t k = 0; k < p->n_settings; k++) {
			const struct setting *s = &p->settings[k];

			if (s->program == RUN_TRAIN && !strcmp(s->key, key) &&
			    (!s->n_target ||
			     (strlen(name) == s->n_target &&
			      !strncmp(name, s->target, s->n_target))))
				found = s->value;
		}
	}
	return found;
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

const struct gpu_model *machine_model(const struct workload *w,
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
	struct err why = { 0 };
	struct machine m;
	int r;

	/* a rate alone needs no table; with a GPU gpemu-train says it all */
	if (!model[0] ||
	    config_number(w, cell->jobs[job].train, "train", "gpu_rate") > 0)
		return 0;
	machine_of(w, cell, &cell->jobs[job], &m);
	r = load_gpu(known, m.gpu, err);
	machine_fini(&m);
	if (r < 0 ||
	    machine_model(w, cell->jobs[job].train, &known->profile, &why))
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
		struct cell cell;

		if (workload_configure(w, i, &cell) < 0) {
			r = err_set(err, -ENOMEM, "out of memory");
			break;
		}
		for (size_t k = 0; r == 0 && k < cell.n_jobs; k++)
			if (!cell_is_exec(&cell.jobs[k]))
				r = check_job(w, &cell, k, &known, err);
		cell_free(&cell);
	}
	free(known.name);
	gpu_profile_free(&known.profile);
	return r;
}
