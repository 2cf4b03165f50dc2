/* SPDX-License-Identifier: MIT */
#include "runner/cell/run_estimate.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/json.h"
#include "common/plugin.h"
#include "common/units.h"
#include "common/util.h"
#include "emu/gpu/gpus.h"
#include "emu/gpu/pinned.h"
#include "emu/profile/profile_dataset.h"
#include "emu/profile/profile_gpu.h"
#include "emu/profile/profile_prep.h"
#include "emu/profile/profile_rate.h"
#include "emu/profile/profile_storage.h"
#include "runner/cell/run_cell.h"
#include "runner/run/run_dataset.h"
#include "runner/cell/run_machine.h"
#include "runner/cell/run_tiers.h"

/* measured: wall time of a cell minus that of its epochs, 0.6 to 1.2 s over 15
 * shipped workloads, mostly start of mount and loader; 2 idle cores */
#define CELL_OVERHEAD_S 0.9

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
	const char *size = json_string_value(json_object_get(recipe, "size"));
	struct dataset_profile p = { 0 };
	uint64_t bytes;
	int code = -ENOENT;

	if (size && units_parse_size(size, &bytes) == 0)
		code = dataset_profile_normal(1, (double)bytes, 0, &p, NULL);
	else if (name)
		code = dataset_profile_load(name, &p, NULL);

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
	double head = (dist_time_mean(&c->seek) + (double)c->rotation_ns / 2) *
		      storage_reordered(c, (uint64_t)MAX(depth, 1));
	double busy = (head + dist_time_mean(&c->occupancy)) * 1e-9;
	double latency = dist_time_mean(&c->latency) * 1e-9, s = 0;

	busy += storage_channel_ns(p, bytes) / 1e9;
	if (p->channels.count)
		s = busy / (double)p->channels.count;
	if (p->link.mb_per_s > 0)
		s = MAX(s, bytes / (p->link.mb_per_s * 1e6));
	if (p->iops.per_s > 0)
		s = MAX(s, (double)MAX(c->slots, 1u) / p->iops.per_s);
	if (p->quota.per_s > 0)
		s = MAX(s, (double)c->slots / p->quota.per_s);
	if (p->quota.mb_per_s > 0)
		s = MAX(s, bytes / (p->quota.mb_per_s * 1e6));
	return MAX(s, (busy + latency) / MAX(depth, 1));
}

/* Seconds per file of a mount that reads `depth` files concurrently. */
static double file_seconds(const char *storage, double bytes, double depth,
			   double group)
{
	struct storage_profile *p = NULL;
	double s = 0;

	if (storage_profile_load(storage, &p, NULL) == 0)
		s = op_seconds(p, STORAGE_LOOKUP, 0, depth) +
		    op_seconds(p, STORAGE_OPEN, 0, depth) +
		    op_seconds(p, STORAGE_READ, bytes * group, depth) / group;
	storage_profile_free(p);
	return s;
}

/* The share of `bytes` that a tier holds. */
static double held(const struct run_tier *t, double bytes)
{
	double share = t->size.fraction;

	if (plugin_is(t->policy, "none"))
		return 0;
	if (share < 0)
		share = bytes > 0 ? (double)t->size.bytes / bytes : 0;
	return MIN(share, 1);
}

/*
 * The time of the mean file in a later epoch, if no two tiers hold the same
 * file. A miss takes `missed`. LRU keeps exactly the files that a fresh shuffle
 * needs last. Source: Mohan et al., PVLDB 14(5), 2021.
 */
static double later_seconds(const struct workload *w, const json_t *fs,
			    const struct data *d, double depth, double missed)
{
	struct run_tiers t;
	double left = 1, s = 0;

	run_tiers_of(w, fs, &t);
	for (size_t i = 0; i < t.n; i++) {
		double c = held(&t.v[i], d->files * d->bytes);

		if (plugin_is(t.v[i].policy, "lru") && c < 1)
			c += (1 - c) * log(1 - c);
		c = MIN(c, left);
		left -= c;
		if (t.v[i].storage)
			s += c *
			     file_seconds(t.v[i].storage, d->bytes, depth, 1);
	}
	run_tiers_fini(&t);
	return s + left * missed;
}

static double cache_bytes(const struct workload *w, const json_t *fs,
			  double bytes)
{
	struct run_tiers t;
	double sum = 0;

	run_tiers_of(w, fs, &t);
	for (size_t i = 0; i < t.n; i++)
		sum += held(&t.v[i], bytes) * bytes;
	run_tiers_fini(&t);
	return sum;
}

/* --- gpemu-train ------------------------------------------------------ */

/* Bytes per sample copied to the GPU, for files of `read` bytes on average. */
static uint64_t delivered(const struct workload *w, const json_t *train,
			  const struct gpu_profile *p,
			  const struct gpu_model *m, double read)
{
	enum prep_output output = PREP_FP32;
	double side = config_number(w, train, "train", "image_size");
	uint64_t prepared = 0;

	prep_output_parse(config_text(w, train, "train", "prep_output"),
			  &output, NULL);
	if (!plugin_is(config_text(w, train, "train", "prep"), "none"))
		prepared = prep_image_bytes((uint64_t)side, output);
	return gpu_delivered_bytes(p, m, prepared, (uint64_t)read);
}

/* Set up the GPUs in their node as gpemu-train does. */
static int gpus_of(const struct workload *w, const json_t *train,
		   const struct machine *m, const struct gpu_profile *p,
		   const struct gpu_model *model, struct gpus_config *ret)
{
	int code;

	*ret = (struct gpus_config){
		.n = (uint32_t)MIN(m->gpus, GPUS_MAX),
		.inference = config_flag(w, train, "train", "inference"),
	};
	code = gpus_parallel_parse(config_text(w, train, "train", "parallel"),
				   &ret->parallel, NULL);
	if (code == 0)
		code = gpu_transfer_parse(config_text(w, train, "train",
						      "transfer"),
					  &ret->transfer, NULL);
	if (code == 0)
		code = collective_parse(config_text(w, train, "train",
						    "allreduce"),
					&ret->reduce.algorithm, NULL);
	return code < 0 ? code
			: node_links(&m->node, p, model, (uint64_t)m->nodes,
				     ret, NULL);
}

/* The pin mode. */
struct pinning {
	bool pinned, staged, inlined;
};

static struct pinning pinning_of(const struct workload *w, const json_t *train,
				 double batch_bytes, bool files)
{
	const char *pin = config_text(w, train, "train", "pin");
	struct units_capacity budget = { 0 };
	bool no = !strcmp(pin, "off");

	if (!strcmp(pin, "auto") && files &&
	    units_parse_capacity(config_text(w, train, "train", "pin_budget"),
				 &budget) == 0)
		no = (double)pinned_room(budget.bytes) < batch_bytes;
	return (struct pinning){
		.pinned = !no,
		.staged = files && !no && strcmp(pin, "direct"),
		.inlined = !strcmp(pin, "inline"),
	};
}

/* Seconds per step if batches, of files of `read` bytes, are always ready. */
static double pace(const struct workload *w, const json_t *train,
		   const struct machine *m, const struct gpu_profile *p,
		   const struct gpu_model *model, const struct gpus_config *c,
		   double read)
{
	uint32_t n =
		(uint32_t)MAX(config_number(w, train, "train", "batch"), 1);
	uint32_t all = c->parallel == GPUS_DP ? n * c->n : n;
	uint64_t bytes = delivered(w, train, p, model, read);
	struct pinning pin =
		pinning_of(w, train, (double)bytes * all, read > 0);
	struct gpus_part part, batch;
	struct dist_time step;
	uint64_t staged = 0;

	part = gpus_part_of(p, model, n, bytes * n, pin.pinned);
	batch = gpus_part_of(p, model, all, bytes * all, pin.pinned);
	if (dist_time_parse(config_text(w, train, "train", "step_time"), &step,
			    NULL) == 0)
		gpus_set_compute(&part, dist_time_mean(&step));
	dist_time_free(&step);
	if (c->inference)
		part.backward_ns = part.optimizer_ns = 0;
	part.prep_ns = machine_prep_gpu_ns(m, n);
	if (pin.staged)
		staged = gpu_copy_ns(p, NULL, GPU_COPY_TO_PINNED, bytes * all);
	if (pin.inlined)
		batch.copy_ns += staged;
	return (double)MAX(gpus_pace(c, &batch, &part), staged) * 1e-9;
}

static int step_seconds(const struct workload *w, const json_t *train,
			const struct machine *m, double read, double *ret)
{
	struct gpu_profile gpu = { 0 };
	const struct gpu_model *model = NULL;
	struct gpus_config c;
	struct gpu_rate rate = {
		.name = "rate",
		.source = "rate",
		.model = config_text(w, train, "train", "model"),
		.samples_per_s = config_number(w, train, "train", "gpu_rate"),
	};
	int code = rate.samples_per_s > 0
			   ? gpu_profile_from_rate(&rate, &gpu, NULL)
			   : gpu_profile_load(m->gpu, &gpu, NULL);

	if (code == 0)
		model = rate.samples_per_s > 0
				? gpu.models.items
				: machine_model(w, train, &gpu, NULL);
	if (code == 0)
		code = model ? gpus_of(w, train, m, &gpu, model, &c) : -ENOENT;
	if (code == 0)
		*ret = pace(w, train, m, &gpu, model, &c, read);
	gpu_profile_free(&gpu);
	return code;
}

/* Transform time per sample over all virtual cores. */
static double prep_seconds(const struct machine *m, double bytes)
{
	struct prep_profile p = { 0 };
	double s = 0;

	if (m->prep_time ? prep_profile_given(m->prep_time, &p, NULL) == 0
			 : m->prep && prep_profile_load(m->prep, &p, NULL) == 0)
		s = prep_profile_mean(&p, bytes) * 1e-9 / m->cores;
	prep_profile_free(&p);
	return s;
}

/* The time of one job, wall seconds. */
struct job_time {
	double start, run; /* start, and duration if alone */
	double gpu;	   /* part of `run` in which its GPUs compute */
};

/* Bytes per file as the loader sees it; synthetic with the loader null. */
static int samples_of(const struct workload *w, const struct cell_job *job,
		      const json_t *recipe, struct data *ret)
{
	if (!plugin_is(config_text(w, job->train, "train", "loader"), "null"))
		return data_of(recipe, ret);
	*ret = (struct data){
		.files = config_number(w, job->train, "train", "samples"),
	};
	return 0;
}

/* Files per group, if the loader reads groups. */
static double group_of(const struct workload *w, const struct cell_job *job,
		       const json_t *fs)
{
	if (!plugin_is(config_text(w, job->train, "train", "order"), "group"))
		return 1;
	return MAX(config_number(w, fs, "fs", "group"), 1);
}

static int job_time(const struct runner *r, const struct cell *cell,
		    const struct cell_job *job, const struct machine *m,
		    struct job_time *ret)
{
	const struct workload *w = r->w;
	const struct cell_mount *mount = &cell->mounts[job->mount];
	double batch = config_number(w, job->train, "train", "batch");
	double epochs = MAX(config_number(w, job->train, "train", "epochs"), 1);
	double most = config_number(w, job->train, "train", "max_steps");
	double samples = MAX(batch, 1) * m->gpus;
	double steps, step = 0, prep, read = 0, later = 0,
		      scale = w->time_scale;
	struct data d;

	if (cell_is_exec(job) || cell_job_is_simulated(job) ||
	    samples_of(w, job, mount->dataset, &d) < 0 ||
	    step_seconds(w, job->train, m, d.bytes, &step) < 0)
		return -ENOENT;
	prep = prep_seconds(m, d.bytes) * samples;
	if (r->mounted && d.bytes > 0) {
		read = file_seconds(config_text(w, mount->fs, "fs", "storage"),
				    d.bytes, m->depth,
				    group_of(w, job, mount->fs));
		later = later_seconds(w, mount->fs, &d, m->depth, read);
	}
	read *= samples;
	later *= samples;
	steps = ceil(d.files / m->nodes / samples);
	if (most > 0)
		scale *= MIN(1, most / (steps * epochs));
	prep = MAX(prep, step);
	ret->start = (double)job->start_ns * 1e-9 * w->time_scale;
	ret->gpu = steps * epochs * step * scale;
	ret->run = steps * scale *
		   (MAX(prep, read) + (epochs - 1) * MAX(prep, later));
	return 0;
}

int estimate_shape(const struct runner *r, const struct cell *cell,
		   const struct cell_job *job, struct estimate_shape *ret)
{
	const struct workload *w = r->w;
	const struct cell_mount *m = &cell->mounts[job->mount];
	double batch = config_number(w, job->train, "train", "batch");
	double most = config_number(w, job->train, "train", "max_steps");
	struct machine machine;
	struct data d;

	if (cell_is_exec(job) || data_of(m->dataset, &d) < 0)
		return -ENOENT;
	machine_of(w, cell, job, &machine);
	machine_fini(&machine);
	*ret = (struct estimate_shape){
		.bytes = d.files * d.bytes,
		.steps = ceil(d.files / machine.nodes /
			      (MAX(batch, 1) * machine.gpus)),
		.direct = config_flag(w, job->train, "train", "direct"),
	};
	if (most > 0)
		ret->steps = MIN(ret->steps, most);
	ret->cache_bytes =
		cache_bytes(w, m->fs, ret->bytes) * (double)job->nodes;
	return 0;
}

/* --- cells ------------------------------------------------------------ */

/* Wall seconds of an earlier run of the point; -ENOENT. */
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

/*
 * Time until the last job is done. Shared GPUs are never idle while a job has
 * work: for each start, the end is at least that start plus the GPU time of all
 * later jobs.
 */
static double together(const struct job_time *t, size_t n, double n_shared)
{
	double end = 0;

	for (size_t i = 0; i < n; i++) {
		double busy = 0;

		for (size_t k = 0; n_shared >= 1 && k < n; k++)
			if (t[k].start >= t[i].start)
				busy += t[k].gpu / n_shared;
		end = MAX(end, t[i].start + MAX(busy, t[i].run));
	}
	return end;
}

static int model_seconds(const struct runner *r, const struct cell *cell,
			 double *ret)
{
	_cleanup_free_ struct job_time *t = calloc(cell->n_jobs, sizeof(*t));
	double n_shared =
		cell->gpud ? config_number(r->w, cell->gpud, "gpud", "gpus")
			   : 0;
	int code = t ? 0 : -ENOMEM;

	for (size_t i = 0; code == 0 && i < cell->n_jobs; i++) {
		struct machine m;

		machine_of(r->w, cell, &cell->jobs[i], &m);
		code = job_time(r, cell, &cell->jobs[i], &m, &t[i]);
		t[i].gpu *= m.gpus;
		machine_fini(&m);
	}
	if (code == 0)
		*ret = together(t, cell->n_jobs, n_shared) + CELL_OVERHEAD_S;
	return code;
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
		/* warm-ups precede the first repetition */
		runs = cell.repetition ? 1 : 1 + (double)r->w->warmup;
		if (known_seconds(r, cell.point, &s) == 0)
			ret->n_measured++;
		else if (cell_is_simulated(&cell))
			ret->n_simulated++;
		else if (model_seconds(r, &cell, &s) == 0)
			ret->n_modelled++;
		else
			ret->n_unknown++;
		ret->seconds += s * runs;
		cell_free(&cell);
	}
	return 0;
}
