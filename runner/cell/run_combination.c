/* SPDX-License-Identifier: MIT */
#include "runner/cell/run_command.h"
#include "runner/cell/run_combination.h"

#include <errno.h>

#include "common/json.h"
#include "common/util.h"

struct combinations {
	struct runner *r;
	json_t *known; /* {"PROGRAM HOW CONFIG": true} */
};

/* Of gpemu-train, with a dispatcher of its batches; of the keys of gpemu-fs,
 * how a simulation reads them. */
enum how { ALONE, WITH_SERVICE, IN_SIMULATION };

/* Where the file sets what is special about the point: the last axis of this
 * program, else its base. */
static const struct conf_node *place_of(const struct workload *w, size_t point,
					enum run_program program)
{
	const struct conf_node *place = w->base[program];

	for (size_t a = 0; a < w->n_axes; a++) {
		const struct axis_point *p = workload_at(w, point, a);

		for (size_t i = 0; i < p->n_settings; i++)
			if (p->settings[i].program == program)
				place = p->settings[i].value;
	}
	return place ? place : w->root;
}

/* As a simulation reads the configuration of gpemu-fs. */
static int ask_simulation(struct runner *r, const json_t *fs, struct err *err)
{
	json_auto_t *train =
		json_pack("{s:s, s:s}", "simulate", "on", "prep", "none");
	_cleanup_free_ char *path = NULL;
	int code;

	if (!train || asprintf(&path, "%s/check-fs.yaml", r->scratch) < 0)
		return -ENOMEM;
	code = json_write(fs, path, err);
	return code < 0
		       ? code
		       : runner_check_config(r, RUN_TRAIN, train,
					     (const char *[]){ "--data", "data",
							       "--fs-config",
							       path, NULL },
					     err);
}

/* gpemu-train checks a whole run, with what gpemu-run adds to it. */
static int ask(struct runner *r, enum run_program program, enum how how,
	       const json_t *config, struct err *err)
{
	const char *more[RUNNER_MORE + 1] = { "--data", "data" };
	json_auto_t *options = cell_options(program, config);
	size_t n = 2;

	if (!options)
		return -ENOMEM;
	if (how == IN_SIMULATION)
		return ask_simulation(r, config, err);
	if (r->w->base[RUN_GPUD]) {
		more[n++] = "--gpu-server";
		more[n++] = "socket";
	}
	if (command_has_checkpoints(config)) {
		more[n++] = "--checkpoint-dir";
		more[n++] = "checkpoints";
	}
	if (how == WITH_SERVICE) {
		more[n++] = "--dispatcher";
		more[n++] = "127.0.0.1:1";
	}
	return runner_check_config(r, program, options,
				   program == RUN_TRAIN ? more : NULL, err);
}

static int check_one(struct combinations *c, size_t point,
		     enum run_program program, enum how how,
		     const json_t *config, struct err *err)
{
	_cleanup_free_ char *text =
		json_dumps(config, JSON_COMPACT | JSON_SORT_KEYS);
	_cleanup_free_ char *key = NULL;
	const struct workload *w = c->r->w;
	struct err why = { 0 };
	char label[90];
	int code;

	if (!text || asprintf(&key, "%d %d %s", program, how, text) < 0)
		return -ENOMEM;
	if (json_object_get(c->known, key))
		return 0;
	if (json_object_set_new(c->known, key, json_true()) < 0)
		return -ENOMEM;
	code = ask(c->r, program, how, config, &why);
	if (code != -EINVAL)
		return code < 0 ? err_set(err, code, "%s", why.text) : 0;
	workload_label(w, point, label, sizeof(label));
	return conf_node_error(place_of(w, point, program), w->path, err,
			       "%s: %s: %s", label,
			       how == IN_SIMULATION ? "gpemu-train --simulate"
						    : run_program_name(program),
			       why.text);
}

static int check_job(struct combinations *c, const struct cell *cell,
		     const struct cell_job *job, struct err *err)
{
	int code;

	if (cell_is_exec(job))
		return 0;
	if (job->nodes > 1 && command_has_checkpoints(job->train) &&
	    cell_writable(&cell->mounts[job->mount]))
		return conf_node_error(
			place_of(c->r->w, cell->point, RUN_FS), c->r->w->path,
			err,
			"writable: each node has a mount of its own, but all "
			"ranks need one folder for their checkpoints; name it "
			"with train.checkpoint_dir, or leave writable out");
	code = check_one(c, cell->point, RUN_TRAIN,
			 cell->prepd && cell_has_service(job) ? WITH_SERVICE
							      : ALONE,
			 job->train, err);
	return code == 0 && cell_job_is_simulated(job)
		       ? check_one(c, cell->point, RUN_FS, IN_SIMULATION,
				   cell->mounts[job->mount].fs, err)
		       : code;
}

static int check_cell(struct combinations *c, const struct cell *cell,
		      struct err *err)
{
	int code = 0;

	for (size_t i = 0; code == 0 && i < cell->n_mounts; i++)
		code = check_one(c, cell->point, RUN_FS, ALONE,
				 cell->mounts[i].fs, err);
	for (size_t i = 0; code == 0 && i < cell->n_jobs; i++)
		code = check_job(c, cell, &cell->jobs[i], err);
	for (size_t i = 0; code == 0 && i < RUN_SERVERS; i++)
		if (cell->servers[i])
			code = check_one(c, cell->point, RUN_GPUD + i, ALONE,
					 cell->servers[i], err);
	return code;
}

int combination_check(struct runner *r, struct err *err)
{
	struct combinations c = { .r = r, .known = json_object() };
	int code = c.known ? 0 : -ENOMEM;

	for (size_t i = 0; code == 0 && i < r->w->n_points; i++) {
		_cleanup_(cell_free) struct cell cell = { 0 };

		code = workload_configure(r->w, i, &cell);
		if (code == 0)
			code = check_cell(&c, &cell, err);
	}
	json_decref(c.known);
	return code;
}
