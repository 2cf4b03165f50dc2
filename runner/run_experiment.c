/* SPDX-License-Identifier: MIT */
#include "runner/run_experiment.h"

#include <errno.h>
#include <inttypes.h>

#include "common/json.h"
#include "common/log.h"
#include "common/replace.h"
#include "common/util.h"
#include "runner/cell/run_cell.h"
#include "runner/cell/run_command.h"
#include "runner/run/run_dataset.h"
#include "runner/run/run_identity.h"
#include "runner/run/run_lock.h"
#include "runner/run_loop.h"
#include "runner/cell/run_machine.h"
#include "runner/page/run_page.h"
#include "runner/page/run_plot.h"
#include "runner/cell/run_profiles.h"
#include "runner/page/run_report.h"
#include "runner/page/run_rules.h"
#include "runner/result/run_study.h"
#include "runner/page/run_warnings.h"
#include "runner/result/run_verdict.h"

/* Does this axis set keys of gpemu-fs? */
static bool varies_mount(const struct axis *axis)
{
	for (size_t i = 0; i < axis->n_points; i++)
		for (size_t k = 0; k < axis->points[i].n_settings; k++)
			if (axis->points[i].settings[k].program == RUN_FS)
				return true;
	return false;
}

/* Without a mount, the values of such an axis would be one and the same. */
static int check_axes(const struct workload *w, const struct err *why,
		      struct err *err)
{
	for (size_t i = 0; i < w->n_axes; i++)
		if (varies_mount(&w->axes[i]))
			return err_set(
				err, -ENODEV,
				"cannot mount here (%s), and the axis %s "
				"varies the mount: run where /dev/fuse exists, "
				"or give --no-mount for the plain folder, on "
				"which this axis has no effect",
				why->text, w->axes[i].name);
	return 0;
}

/* Set r->mounted; warn if the cells cannot run on a mount. -ENODEV: an axis
 * needs it. */
static int choose_mount(struct runner *r, struct err *err)
{
	struct err why = { 0 };
	int code;

	if (!r->mounted)
		return 0;
	code = cell_probe_mount(r, &why);
	if (code == -ENODEV && check_axes(r->w, &why, err) < 0)
		return code;
	if (code == -ENODEV) {
		log_warn("cannot mount here (%s): the cells run on the plain "
			 "folder, without the emulated storage and its cache",
			 why.text);
		r->mounted = false;
		return 0;
	}
	return code < 0 ? err_set(err, code, "%s", why.text) : 0;
}

int experiment_dry_run(struct experiment *e)
{
	struct runner *r = &e->r;
	size_t n = workload_n_cells(r->w);
	_cleanup_free_ bool *mine = NULL;
	int code = shard_cells(&r->shard, r->w, &mine);

	printf("%s: %zu points, %" PRIu64 " repetitions, %zu cells\n",
	       r->w->name, r->w->n_points, r->w->repetitions,
	       shard_n_cells(&r->shard, r->w));
	for (size_t i = 0; code == 0 && i < n; i++) {
		_cleanup_(cell_free) struct cell cell = { 0 };

		if (mine[i])
			code = workload_cell(r->w, i, r->mounted, &cell);
		if (mine[i] && code == 0)
			code = cell_print(r, &cell, stdout);
	}
	return code;
}

/* Report plots that cannot be drawn; without gnuplot there is still the table.
 */
static int draw_plots(struct runner *r, const struct result *res, bool quiet,
		      struct err *ret_err)
{
	const struct plot *plots = r->w->plots.items;
	int worst = 0;

	for (size_t i = 0; i < r->w->plots.n && !r->stop.signal; i++) {
		struct err err = { 0 };
		int code = plot_draw(res, &plots[i], r, &err);

		if (code == 0 && !quiet)
			printf("plot      %s/plots/%s.svg\n", r->out,
			       plots[i].name);
		if (code == 0)
			continue;
		if (code == -ENOENT || code == -ENODATA)
			log_warn("%s", err.text);
		else
			worst = err_set(ret_err, code, "%s", err.text);
	}
	return worst;
}

/* Write summary.json; `ret` gets it too. */
static int write_summary(const struct runner *r, const struct result *res,
			 const struct verdicts *v, json_t **ret,
			 struct err *err)
{
	json_auto_t *j = result_json(res);
	_cleanup_free_ char *path = util_join(r->out, "summary.json");
	struct rules rules;

	rules_of(&rules, res);
	if (!j || json_object_set_new(j, "rules", rules_json(&rules, r)) < 0 ||
	    json_object_set_new(j, "warnings", warnings_json(res->records)) <
		    0 ||
	    json_object_set_new(j, "verdicts", verdicts_json(v)) < 0 ||
	    json_object_set_new(j, "score", score_json(&v->score)) < 0 ||
	    json_object_set_new(j, "published", published_json(res)) < 0 ||
	    !path)
		return -ENOMEM;
	*ret = json_incref(j);
	return json_replace(j, path, err);
}

struct outcome {
	const struct result *res;
	const struct verdicts *v;
};

static void print_all(const void *ctx, size_t width, FILE *to)
{
	const struct outcome *o = ctx;
	json_auto_t *warnings = warnings_json(o->res->records);
	struct rules rules;

	rules_of(&rules, o->res);
	result_print(o->res, width, to);
	if (o->v->n)
		fputc('\n', to);
	verdicts_print(o->v, to);
	fputc('\n', to);
	rules_print(&rules, o->res->r, to);
	warnings_print(warnings, to);
}

/* results.csv, or with `v` verdicts.csv */
static int write_csv(const struct runner *r, const struct result *res,
		     const struct verdicts *v, struct err *err)
{
	struct replace file;
	FILE *f;
	int code = replace_open(&file, r->out,
				v ? "verdicts.csv" : "results.csv", &f, err);

	if (code < 0)
		return code;
	if (v)
		verdicts_csv(v, r->w->name, f);
	else
		result_csv(res, f);
	return replace_close(&file, f, 0, err);
}

static int make_report(struct runner *r, bool quiet, bool *ret_failed,
		       json_t **ret_summary, struct err *err)
{
	struct verdicts v = { 0 };
	struct result res;
	int code = result_init(&res, r, err);

	if (code == 0)
		code = verdicts_init(&v, &res, err);
	if (code == 0)
		code = page_print(r->out, "table.txt", quiet, print_all,
				  &(struct outcome){ &res, &v }, err);
	if (code == 0)
		code = write_summary(r, &res, &v, ret_summary, err);
	if (code == 0)
		code = write_csv(r, &res, NULL, err);
	if (code == 0)
		code = write_csv(r, &res, &v, err);
	if (code == 0 && !quiet)
		printf("\nrecords   %s/records/\n", r->out);
	if (code == 0)
		code = draw_plots(r, &res, quiet, err);
	if (code == 0)
		code = report_write(&res, &v, *ret_summary, err);
	if (code == 0 && !quiet)
		printf("report    %s/report.html\n", r->out);
	*ret_failed = *ret_failed || score_in(&v.score, VERDICT_FAIL);
	verdicts_fini(&v);
	result_fini(&res);
	return code;
}

/* One gpemu-run at a time, so that the files of a folder belong together. */
int experiment_report(struct runner *r, bool quiet, bool *ret_failed,
		      json_t **ret_summary, struct err *err)
{
	int code = runner_lock(r, LOCK_REPORT, err);

	if (code < 0)
		return code;
	code = make_report(r, quiet, ret_failed, ret_summary, err);
	runner_unlock(r, LOCK_REPORT);
	return code;
}

int experiment_ready(struct experiment *e, struct err *err)
{
	int code = runner_open(&e->r, err);

	if (code == 0)
		code = dataset_make(&e->r, err);
	if (code == 0)
		code = choose_mount(&e->r, err);
	return code == 0 ? study_write(&e->r, err) : code;
}

/* What a shard has done; its table would be mostly holes. */
static int report_shard(const struct runner *r, const struct tally *tally,
			bool quiet, json_t **ret_summary)
{
	size_t n = shard_n_cells(&r->shard, r->w);
	size_t n_ok = n - tally->n_failed;

	if (!quiet)
		printf("shard %zu of %zu of %s: %zu of its %zu cells have a "
		       "record in %s\n"
		       "for the table: gpemu-run merge FOLDER... -o DIR\n",
		       r->shard.index + 1, r->shard.n, r->w->name, n_ok, n,
		       r->out);
	*ret_summary = json_pack("{s:s, s:I, s:I, s:I, s:I}", "workload",
				 r->w->name, "shard",
				 (json_int_t)r->shard.index + 1, "shards",
				 (json_int_t)r->shard.n, "cells", (json_int_t)n,
				 "ok", (json_int_t)n_ok);
	return *ret_summary ? 0 : -ENOMEM;
}

int experiment_run(struct experiment *e, const struct run_options *o,
		   bool *ret_failed, json_t **ret_summary, struct err *err)
{
	struct runner *r = &e->r;
	struct tally tally = { 0 };
	json_auto_t *summary = NULL;
	enum loop_cells which = o->fresh   ? LOOP_ALL
				: o->again ? LOOP_DISTURBED
					   : LOOP_NEW;
	int code = experiment_ready(e, err);

	if (code == 0)
		code = o->jobs > 1
			       ? loop_run_jobs(r, which, o->jobs, &tally, err)
			       : loop_run(r, which, o->progress_mode, &tally);
	/* keep the records made before an interruption */
	if (code == 0 && r->shard.n)
		code = report_shard(r, &tally, o->quiet, &summary);
	else if (code == 0)
		code = experiment_report(r, o->quiet, ret_failed, &summary,
					 err);
	if (tally.n_other)
		fprintf(stderr,
			"gpemu-run: %zu cells were run by another gpemu-run\n",
			tally.n_other);
	if (tally.n_failed && !r->stop.signal)
		log_error("%zu of %zu cells failed; logs are in %s/logs",
			  tally.n_failed, shard_n_cells(&r->shard, r->w),
			  r->out);
	*ret_failed = *ret_failed || tally.n_failed;
	if (ret_summary)
		*ret_summary = TAKE_PTR(summary);
	return code;
}

/* --- combinations of keys ----------------------------------------------- */

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

/*
 * Let the programs check the configuration of each mount, job, gpemu-gpud and
 * worker of gpemu-prepd of all points, and gpemu-train what a simulation has of
 * gpemu-fs: keys that are each valid may exclude each other. Each distinct
 * configuration is checked once. -EINVAL: the text has the position of the axis
 * that completes the combination, and the labels of the point.
 */
static int combination_check(struct runner *r, struct err *err)
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

/* --- before and after ------------------------------------------------- */

static int load(const char *path, const struct run_options *o,
		struct workload *w, struct err *err)
{
	int code = workload_load(path, o->overrides, w, err);

	if (code < 0)
		return code;
	if (o->repetitions)
		w->repetitions = o->repetitions;
	if (o->time_scale > 0)
		w->time_scale = o->time_scale;
	if (o->common.seed)
		w->seed = o->common.seed;
	return 0;
}

static int prepare(struct workload *w, struct runner *r,
		   const struct run_options *o, struct err *err)
{
	json_auto_t *defaults = NULL;
	int code = workload_check(w, runner_check, r, err);

	if (code == 0)
		code = combination_check(r, err);
	if (code == 0)
		code = runner_defaults(r, &defaults, err);
	if (code == 0)
		code = identity_init(w, r->bin_dir, r->share_dir);
	if (code == 0)
		code = profiles_collect(w, defaults, err);
	if (code == 0)
		code = machine_check(w, err);
	if (code == 0)
		code = dataset_init(r, o->data_dir, err);
	return code;
}

int experiment_open(struct experiment *e, const char *path, const char *out,
		    const struct run_options *o, struct err *err)
{
	int code;

	*e = (struct experiment){ .r = { .lock_fd = -1, .stop.fd = -1 } };
	code = load(path, o, &e->w, err);
	if (code == 0)
		code = runner_init(&e->r, &e->w, o->bin_dir, out, err);
	e->r.mounted = !o->no_mount && !workload_is_store_only(&e->w);
	e->r.shard = o->shard;
	if (code == 0 && o->network)
		code = network_parse(o->network, &e->r.network, err);
	if (e->r.network != NETWORK_AUTO)
		e->w.network = o->network;
	return code == 0 ? prepare(&e->w, &e->r, o, err) : code;
}

void experiment_close(struct experiment *e)
{
	runner_fini(&e->r);
	workload_free(&e->w);
}
