/* SPDX-License-Identifier: MIT */
#include "runner/cell/run_record.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "common/json.h"
#include "common/log.h"
#include "common/units.h"
#include "common/util.h"
#include "common/version.h"
#include "runner/cell/run_disturb.h"
#include "runner/run/run_identity.h"
#include "runner/cell/run_profiles.h"
#include "runner/cell/run_rig.h"

static json_t *mounts_json(const struct run *run)
{
	json_t *j = json_object();

	for (size_t i = 0; i < run->cell->n_mounts; i++) {
		const struct cell_mount *m = &run->cell->mounts[i];

		json_object_set_new(j, m->name,
				    json_pack("{s:o, s:O, s:O}", "folder",
					      json_bytes(run->mounts[i].folder),
					      "dataset", m->dataset, "fs",
					      m->fs));
	}
	return j;
}

static json_t *jobs_json(const struct run *run)
{
	json_t *j = json_object();

	for (size_t i = 0; i < run->cell->n_jobs; i++) {
		const struct cell_job *job = &run->cell->jobs[i];
		bool exec = cell_is_exec(job);

		json_object_set_new(
			j, job->name,
			json_pack("{s:s, s:f, s:O, s:O}", "mount",
				  run->cell->mounts[job->mount].name, "start_s",
				  (double)job->start_ns / NS_PER_S,
				  exec ? "exec" : "train",
				  exec ? job->exec : job->train, "environment",
				  job->env));
	}
	return j;
}

static json_t *commands_json(const struct run *run)
{
	json_t *j = json_array();

	for (size_t i = 0; i < run->n_servers; i++)
		json_array_append_new(j,
				      command_json(&run->servers[i]->command));
	for (size_t i = 0; i < run->cell->n_jobs; i++)
		json_array_append_new(j, command_json(&run->jobs[i].command));
	return j;
}

static json_t *cell_json(const struct run *run)
{
	const struct cell *c = run->cell;
	const struct workload *w = run->r->w;
	json_t *profiles = profiles_of(w, c, run->with_fs);
	double wall = (double)(run->after.wall_ns - run->before.wall_ns);
	char hash[17];

	snprintf(hash, sizeof(hash), "%016" PRIx64, c->hash);
	return json_pack(
		"{s:s, s:s, s:s, s:o, s:I, s:I, s:f, s:b, s:b, s:o, s:o, "
		"s:O?, s:O?, s:O?, s:o, s:o, s:o, s:s, s:s, s:I, s:s, s:f, "
		"s:I, "
		"s:O, s:s?}",
		"id", c->id, "hash", hash, "workload", w->name, "axes",
		workload_labels(w, c->point), "repetition",
		(json_int_t)c->repetition + 1, "seed", (json_int_t)c->seed,
		"time_scale", w->time_scale, "mounted", run->mounted,
		"simulated", cell_is_simulated(c), "mounts", mounts_json(run),
		"jobs", jobs_json(run), "gpud", c->gpud, "prepd", c->prepd,
		"s3", c->s3, "profiles", profiles, "files",
		identity_of(w, c, run->with_fs), "commands", commands_json(run),
		"gpemu", GPEMU_VERSION, "order", workload_order_name(w),
		"warmup", (json_int_t)w->warmup, "started", run->started,
		"wall_seconds", wall / NS_PER_S, "attempts",
		(json_int_t)run->attempt, "overrides", w->overrides, "network",
		network_name(&run->network));
}

/* The record of a job with `run` added; an object in any case. */
static json_t *job_record(const struct run_job *job)
{
	json_t *record = NULL;
	double wall = (double)(job->end_ns - job->begin_ns);

	if (json_read(job->record, &record, NULL) < 0 ||
	    !json_is_object(record)) {
		json_decref(record);
		record = json_object();
	}
	if (record)
		json_object_set_new(record, "run",
				    json_pack("{s:i, s:f}", "exit_status",
					      job->exit_status, "wall_seconds",
					      wall / NS_PER_S));
	return record;
}

static json_t *jobs_record(const struct run *run)
{
	json_t *all = json_object(), *one;

	if (run->cell->n_jobs == 1)
		one = job_record(&run->jobs[0]);
	else
		one = json_pack("{s:o}", "jobs", all);
	for (size_t i = 0; run->cell->n_jobs > 1 && i < run->cell->n_jobs; i++)
		json_object_set_new(all, run->cell->jobs[i].name,
				    job_record(&run->jobs[i]));
	if (run->cell->n_jobs == 1)
		json_decref(all);
	return one;
}

/* Of gpemu-train: its samples came through the mount. */
static int check_record(const struct run *run, const char *path,
			struct err *err)
{
	json_auto_t *record = NULL;
	json_int_t n;

	if (access(path, R_OK) < 0)
		return err_set(err, -EIO, "gpemu-train wrote no record");
	if (!run->mounted || json_read(path, &record, NULL) < 0)
		return 0;
	n = json_integer_value(json_object_get(
		json_object_get(record, "totals"), "bypassed_samples"));
	return n ? err_set(err, -EIO,
			   "%" JSON_INTEGER_FORMAT
			   " reads of samples bypassed the mount, its storage "
			   "and its cache: links of the dataset that it does "
			   "not follow (fs.follow_links)?",
			   n)
		 : 0;
}

int run_check_records(const struct run *run, struct err *err)
{
	for (size_t i = 0; i < run->cell->n_jobs; i++) {
		int r = cell_is_exec(&run->cell->jobs[i])
				? 0
				: check_record(run, run->jobs[i].record, err);

		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < run->prepd.n; i++)
		if (!run->prepd.parts[i].stats)
			return err_set(err, -EIO,
				       "gpemu-prepd wrote no record");
	return 0;
}

void run_add_numbers(json_t *sum, const json_t *from, const char *const *keys,
		     size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const json_t *a = json_object_get(sum, keys[i]);
		const json_t *b = json_object_get(from, keys[i]);

		if (json_is_integer(b))
			json_add_integer(sum, keys[i],
					 json_integer_value(a) +
						 json_integer_value(b));
		else if (b)
			json_add_real(sum, keys[i],
				      json_number_value(a) +
					      json_number_value(b));
	}
}

/* Adds the counters of a mount's statistics to `sum`. */
static void add_counters(json_t *sum, const json_t *stats)
{
	static const char *const keys[] = { "hits",	     "misses",
					    "hit_bytes",     "miss_bytes",
					    "backend_reads", "backend_bytes",
					    "evictions",     "rejected" };

	run_add_numbers(sum, stats, keys, ARRAY_SIZE(keys));
}

/* The counters of all mounts, also of each epoch. */
static json_t *add_up(const struct run *run)
{
	json_t *sum = json_pack("{s:[]}", "epochs"), *epoch;
	json_t *epochs = json_object_get(sum, "epochs");
	size_t k;

	for (size_t i = 0; i < run->cell->n_mounts; i++) {
		const json_t *stats = run->mounts[i].stats;

		add_counters(sum, stats);
		json_array_foreach (json_object_get(stats, "epochs"), k,
				    epoch) {
			if (k == json_array_size(epochs))
				json_array_append_new(
					epochs, json_pack("{s:I}", "epoch",
							  (json_int_t)k));
			add_counters(json_array_get(epochs, k), epoch);
		}
	}
	return sum;
}

static void set_stats(const struct run *run, json_t *record)
{
	/* all mounts are those of one job's nodes */
	bool nodes = run->cell->n_jobs == 1 &&
		     run->cell->jobs[0].nodes == run->cell->n_mounts;

	json_t *all = run->cell->n_mounts > 1 ? json_object() : NULL;

	for (size_t i = 0; i < run->cell->n_mounts; i++) {
		json_t *stats = run->mounts[i].stats;
		json_t *j = stats ? json_incref(stats) : json_null();

		if (all)
			json_object_set_new(all, run->cell->mounts[i].name, j);
		else
			json_object_set_new(record, "mount", j);
	}
	if (all) {
		json_object_set_new(record, "mount",
				    nodes ? add_up(run) : json_null());
		json_object_set_new(record, "mounts", all);
	}
}

/* The host and its load, merged into the job's `host`. */
static int set_host(const struct run *run, json_t *record)
{
	json_auto_t *watch = watch_json(&run->watch);
	json_auto_t *load = json_pack(
		"{s:f, s:f, s:O, s:O, s:O}", "load_before", run->before.load1,
		"load_after", run->after.load1, "own_cpu_s",
		json_object_get(watch, "own_cpu_s"), "other_cpu_share",
		json_object_get(watch, "other_cpu_share"), "watch", watch);
	json_t *host = host_about();
	const json_t *own = json_object_get(record, "host");

	if (!load || !host || json_object_update(host, load) < 0 ||
	    (json_is_object(own) &&
	     json_object_update_missing(host, (json_t *)own) < 0)) {
		json_decref(host);
		return -ENOMEM;
	}
	return json_object_set_new(record, "host", host);
}

/* --- what disturbed it, and where the rig ended ------------------------ */

/* Cells whose results are no times, or computed ones, cannot be disturbed. */
static double limit_of(const struct workload *w, const json_t *record)
{
	return w->independent || rig_is_simulated(record) ? 1
							  : w->noise.fraction;
}

/* Set the members of `cell`. */
static int judge(const struct workload *w, json_t *record, const json_t *peers,
		 bool *ret)
{
	json_t *cell = json_object_get(record, "cell");
	json_t *signs = disturb_signs(record, peers, limit_of(w, record));

	*ret = json_array_size(signs) > 0;
	if (json_object_set_new(cell, "disturbed", json_boolean(*ret)) < 0 ||
	    json_object_set_new(cell, "disturbance", signs) < 0 ||
	    json_object_set_new(cell, "rig", rig_limits(record)) < 0)
		return -ENOMEM;
	return 0;
}

static json_t *peers_of(const struct runner *r, const struct cell *cell)
{
	const struct workload *w = r->w;
	json_t *peers = json_array();

	for (size_t i = 0; i < w->repetitions; i++) {
		_cleanup_(cell_free) struct cell peer = { 0 };

		if (i == cell->repetition ||
		    workload_cell(w, i * w->n_points + cell->point, r->mounted,
				  &peer) < 0)
			continue;
		json_array_append_new(peers, cell_record(r, &peer));
	}
	return peers;
}

bool cell_judge(const struct runner *r, const struct cell *cell)
{
	_cleanup_free_ char *path = runner_path(r, "records", cell->id, "json");
	json_auto_t *record = cell_record(r, cell);
	json_auto_t *before = json_deep_copy(record);
	json_auto_t *peers = peers_of(r, cell);
	struct err err = { 0 };
	bool disturbed = false;

	if (path && record && judge(r->w, record, peers, &disturbed) == 0 &&
	    !json_equal(record, before) && json_replace(record, path, &err) < 0)
		log_error("%s", err.text);
	return disturbed;
}

json_t *run_record(struct run *run, const char *failure)
{
	json_auto_t *record = jobs_record(run);

	if (!record ||
	    json_object_set_new(record, "status",
				json_string(failure ? "failed" : "ok")) < 0 ||
	    json_object_set_new(record, "failure",
				failure ? json_bytes(failure) : json_null()) <
		    0 ||
	    json_object_set_new(record, "cell", cell_json(run)) < 0 ||
	    set_host(run, record) < 0)
		return NULL;
	set_stats(run, record);
	if (run->gpud.stats)
		json_object_set(record, "gpud", run->gpud.stats);
	if (run->prepd.status)
		json_object_set(record, "prepd", run->prepd.status);
	if (run->s3.server.stats)
		json_object_set(record, "s3", run->s3.server.stats);
	if (judge(run->r->w, record, NULL, &run->disturbed) < 0)
		return NULL;
	return json_incref(record);
}

int run_write_record(struct run *run, const char *failure, struct err *err)
{
	_cleanup_free_ char *path =
		runner_path(run->r, "records", run->cell->id, "json");
	json_auto_t *record = run_record(run, failure);

	return path && record ? json_replace(record, path, err) : -ENOMEM;
}

json_t *cell_any_record(const struct runner *r, const struct cell *cell)
{
	_cleanup_free_ char *path = runner_path(r, "records", cell->id, "json");
	json_auto_t *record = NULL;
	char wanted[17];

	snprintf(wanted, sizeof(wanted), "%016" PRIx64, cell->hash);
	if (!path || json_read(path, &record, NULL) < 0 ||
	    strcmp(json_get_text(json_object_get(record, "cell"), "hash"),
		   wanted))
		return NULL;
	return json_incref(record);
}

json_t *cell_record(const struct runner *r, const struct cell *cell)
{
	json_auto_t *record = cell_any_record(r, cell);

	return strcmp(json_get_text(record, "status"), "ok")
		       ? NULL
		       : json_incref(record);
}
