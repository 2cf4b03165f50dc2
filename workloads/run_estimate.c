/* SPDX-License-Identifier: MIT */
#include "workloads/run_estimate.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/json.h"
#include "common/units.h"
#include "common/util.h"
#include "emu/profile_dataset.h"
#include "emu/profile_gpu.h"
#include "emu/profile_storage.h"
#include "workloads/run_cell.h"
#include "workloads/run_dataset.h"

/* measured: cells of 200 files at time scale 0.1 take 0.25 s, their epochs
 * 0.1 s of it; 2 busy cores */
#define CELL_OVERHEAD_S 0.2

/* A key of a job or mount, or what the program takes without it. */
static const char *text_of(const struct workload *w, const json_t *config,
			   const char *program, const char *key)
{
	const json_t *v = json_object_get(config, key);

	if (!v)
		v = json_object_get(json_object_get(w->defaults, program), key);
	return json_is_string(v) ? json_string_value(v) : "";
}

static double number_of(const struct workload *w, const json_t *config,
			const char *program, const char *key)
{
	double v;

	return workload_number(text_of(w, config, program, key), &v) < 0 ? 0
									 : v;
}

/* --- the dataset ------------------------------------------------------ */

struct data {
	double files, bytes; /* mean size */
};

static int data_of(const json_t *recipe, struct data *ret)
{
	const char *name = json_string_value(json_object_get(
		recipe, dataset_is_synth(recipe) ? "synth" : "dataset"));
	const char *scale = json_string_value(json_object_get(recipe, "scale"));
	double by = 1;
	const char *files = json_string_value(json_object_get(recipe, "files"));
	struct dataset_profile p = { 0 };
	int code = name ? dataset_profile_load(name, &p, NULL) : -ENOENT;

	if (code == 0) {
		ret->files = (double)p.files;
		ret->bytes = dataset_profile_mean(&p);
		if (files)
			units_parse_double(files, &ret->files);
		if (scale && units_parse_double(scale, &by) == 0)
			ret->bytes *= by;
	}
	dataset_profile_free(&p);
	return code;
}

/* --- the device ------------------------------------------------------- */

/* Seconds that one operation costs with `depth` of them in flight. */
static double op_seconds(const struct storage_profile *p, enum storage_op op,
			 double bytes, double depth)
{
	const struct storage_class *c = &p->op[op];
	double head = dist_time_mean(&c->seek) + (double)c->rotation_ns / 2;
	double busy = (head + dist_time_mean(&c->occupancy)) * 1e-9;
	double latency = dist_time_mean(&c->latency) * 1e-9, s = 0;

	if (p->channels.mb_per_s > 0)
		busy += bytes / (p->channels.mb_per_s * 1e6);
	if (p->channels.count)
		s = busy / (double)p->channels.count;
	if (p->link.mb_per_s > 0)
		s = MAX(s, bytes / (p->link.mb_per_s * 1e6));
	if (p->iops.per_s > 0)
		s = MAX(s, (double)MAX(c->slots, 1u) / p->iops.per_s);
	return MAX(s, (busy + latency) / MAX(depth, 1));
}

static double file_seconds(const char *storage, double bytes, double depth)
{
	struct storage_profile *p = NULL;
	double s = 0;

	if (storage_profile_load(storage, &p, NULL) == 0)
		s = op_seconds(p, STORAGE_LOOKUP, 0, depth) +
		    op_seconds(p, STORAGE_OPEN, 0, depth) +
		    op_seconds(p, STORAGE_READ, bytes, depth);
	storage_profile_free(p);
	return s;
}

/* Which share of the reads of a later epoch the device sees. */
static double missed(const struct workload *w, const json_t *fs, double bytes)
{
	const char *policy = text_of(w, fs, "fs", "cache_policy");
	struct units_capacity c;

	if (!strcmp(policy, "none") ||
	    units_parse_capacity(text_of(w, fs, "fs", "cache_size"), &c) < 0)
		return 1;
	if (c.fraction < 0)
		c.fraction = bytes > 0 ? (double)c.bytes / bytes : 0;
	return 1 - MIN(c.fraction, 1);
}

/* --- gpemu-train ------------------------------------------------------ */

static int step_seconds(const struct workload *w, const json_t *train,
			double batch, double *ret)
{
	struct gpu_profile gpu = { 0 };
	const struct gpu_model *model = NULL;
	struct gpu_cost cost;
	int code =
		gpu_profile_load(text_of(w, train, "train", "gpu"), &gpu, NULL);

	if (code == 0)
		model = gpu_profile_model(
			&gpu, text_of(w, train, "train", "model"), NULL);
	if (model) {
		gpu_profile_cost(&gpu, model, (uint64_t)MAX(batch, 1), &cost);
		*ret = (double)(cost.forward_ns + cost.backward_ns +
				cost.transfer_pinned_ns) *
		       1e-9;
	}
	gpu_profile_free(&gpu);
	return model ? 0 : -ENOENT;
}

static int job_seconds(const struct runner *r, const struct cell *cell,
		       const struct cell_job *job, double *ret)
{
	const struct workload *w = r->w;
	const struct cell_mount *m = &cell->mounts[job->mount];
	double batch = number_of(w, job->train, "train", "batch");
	double gpus = MAX(number_of(w, job->train, "train", "gpus"), 1);
	double epochs = MAX(number_of(w, job->train, "train", "epochs"), 1);
	double depth = number_of(w, job->train, "train", "workers");
	double most = number_of(w, job->train, "train", "max_steps");
	double steps, step, read = 0, miss;
	struct data d;

	if (cell_is_exec(job) || data_of(m->dataset, &d) < 0 ||
	    step_seconds(w, job->train, batch, &step) < 0)
		return -ENOENT;
	if (!strcmp(text_of(w, job->train, "train", "loader"), "async"))
		depth = number_of(w, job->train, "train", "queue_depth");
	if (depth < 1)
		depth = (double)sysconf(_SC_NPROCESSORS_ONLN);
	if (r->mounted)
		read = file_seconds(text_of(w, m->fs, "fs", "storage"), d.bytes,
				    depth) *
		       batch * gpus;
	miss = missed(w, m->fs, d.files * d.bytes);
	steps = ceil(d.files / MAX(batch * gpus, 1));
	*ret = steps *
	       (MAX(step, read) + (epochs - 1) * MAX(step, read * miss));
	if (most > 0)
		*ret *= MIN(1, most / (steps * epochs));
	*ret = *ret * w->time_scale + (double)job->start_ns * 1e-9;
	return 0;
}

int estimate_shape(const struct runner *r, const struct cell *cell,
		   const struct cell_job *job, struct estimate_shape *ret)
{
	const struct workload *w = r->w;
	const struct cell_mount *m = &cell->mounts[job->mount];
	double batch = number_of(w, job->train, "train", "batch");
	double gpus = MAX(number_of(w, job->train, "train", "gpus"), 1);
	double most = number_of(w, job->train, "train", "max_steps");
	struct units_capacity c = { .fraction = 0 };
	struct data d;

	if (cell_is_exec(job) || data_of(m->dataset, &d) < 0)
		return -ENOENT;
	*ret = (struct estimate_shape){
		.bytes = d.files * d.bytes,
		.steps = ceil(d.files / MAX(batch * gpus, 1)),
		.direct = !strcmp(text_of(w, job->train, "train", "direct"),
				  "true"),
	};
	if (most > 0)
		ret->steps = MIN(ret->steps, most);
	if (strcmp(text_of(w, m->fs, "fs", "cache_policy"), "none"))
		units_parse_capacity(text_of(w, m->fs, "fs", "cache_size"), &c);
	ret->cache_bytes = c.fraction < 0 ? (double)c.bytes
					  : c.fraction * ret->bytes;
	return 0;
}

/* --- cells ------------------------------------------------------------ */

/* Wall seconds of some earlier run of that point; -ENOENT. */
static int known_seconds(const struct runner *r, size_t point, double *ret)
{
	for (size_t i = 0; i < r->w->repetitions; i++) {
		json_auto_t *record = NULL;
		struct cell cell;

		if (workload_cell(r->w, i * r->w->n_points + point, r->mounted,
				  &cell) < 0)
			return -ENOMEM;
		record = cell_record(r, &cell);
		cell_free(&cell);
		if (!record)
			continue;
		*ret = json_number_value(json_object_get(
			json_object_get(record, "cell"), "wall_seconds"));
		return 0;
	}
	return -ENOENT;
}

static int model_seconds(const struct runner *r, const struct cell *cell,
			 double *ret)
{
	double longest = 0, s;

	for (size_t i = 0; i < cell->n_jobs; i++) {
		if (job_seconds(r, cell, &cell->jobs[i], &s) < 0)
			return -ENOENT;
		longest = MAX(longest, s);
	}
	*ret = longest + CELL_OVERHEAD_S * (double)cell->n_mounts;
	return 0;
}

int estimate_run(const struct runner *r, const size_t *todo, size_t n,
		 struct estimate *ret, struct err *err)
{
	double runs = 1;

	*ret = (struct estimate){ .n_cells = n };
	for (size_t i = 0; i < n; i++) {
		struct cell cell;
		double s = 0;

		if (workload_cell(r->w, todo[i], r->mounted, &cell) < 0)
			return err_set(err, -ENOMEM, "out of memory");
		/* warm-ups come with the first repetition */
		runs = cell.repetition ? 1 : 1 + (double)r->w->warmup;
		if (known_seconds(r, cell.point, &s) == 0)
			ret->n_measured++;
		else if (model_seconds(r, &cell, &s) == 0)
			ret->n_modelled++;
		else
			ret->n_unknown++;
		ret->seconds += s * runs;
		cell_free(&cell);
	}
	return 0;
}
