/* SPDX-License-Identifier: MIT */
/* GPUs without a loader. */
#include <errno.h>
#include <string.h>

#include "common/tick.h"
#include "common/util.h"
#include "emu/gpu/device.h"
#include "lib/options.h"
#include "lib/private.h"
#include "loader/options/train_model.h"
#include "loader/options/train_node.h"

extern const struct prep_ops prep_none;

struct gpemu_gpu {
	struct train_options options;
	struct gpu_profile profile;
	const struct gpu_model *model;
	struct train_node node;
	struct tick *tick;
	struct device *device;
	struct gpu_step step; /* the last one */
	struct err err;
};

/* `n` samples for all of them. */
static int check(struct gpemu_gpu *g, uint64_t n, struct err *err)
{
	uint64_t gpus = g->options.gpus;

	return gpu_check_batch(&g->profile, g->model, &g->node.beside,
			       n / gpus + (n % gpus > 0),
			       g->options.extrapolate, err);
}

static void done(void *ctx, const struct device_step *s)
{
	struct gpemu_gpu *g = ctx;

	g->step = s->gpu[0];
}

static int open_device(struct gpemu_gpu *g, struct err *err)
{
	struct device_job job = { .gpu = &g->profile,
				  .model = g->model,
				  .gpus = &g->node.gpus,
				  .batch = (uint32_t)g->options.batch,
				  .pinned = g->options.pin };
	uint64_t load_ns;
	int r;

	g->tick = tick_new(g->options.time_scale, TICK_DEFAULT_SPIN_NS);
	g->device = device_local_new();
	if (!g->tick || !g->device)
		return err_set(err, -ENOMEM, "out of memory");
	if (g->options.keep_awake)
		tick_keep_awake(g->tick); /* where it is granted */
	job.tick = g->tick;
	g->device->events = (struct device_events){ .done = done, .ctx = g };
	r = device_start(g->device, &job, &load_ns, err);
	if (r == 0)
		device_begin(g->device, 0);
	return r;
}

static int open_gpu(struct gpemu_gpu *g, const char *const options[],
		    struct err *err)
{
	static const char *const keys[] = {
		"gpu",	      "model",	     "batch",	  "transfer",
		"pin",	      "extrapolate", "gpus",	  "node",
		"parallel",   "allreduce",   "precision", "sequence_length",
		"time_scale", "keep_awake",  NULL
	};
	struct train_choice choice = { .prep = &prep_none };
	const struct train_prep prep = { 0 };
	const struct dataset no_files = { .dirfd = -1 };
	int r;

	train_options_init(&g->options);
	r = options_set(&g->options, options, keys, err);
	if (r == 0)
		r = gpu_transfer_parse(g->options.transfer, &choice.transfer,
				       err);
	if (r == 0)
		r = train_options_pin(&g->options, err);
	if (r == 0)
		r = train_node_resolve(&g->options, &choice, err);
	if (r == 0)
		r = gpu_profile_load(g->options.gpu, &g->profile, err);
	if (r < 0)
		return r;
	g->model = train_model_find(&g->options, &g->profile, err);
	if (!g->model)
		return -ENOENT;
	r = train_node_open(&g->options, &choice, &g->profile, g->model, &prep,
			    &g->node, err);
	if (r == 0)
		r = train_node_fit(&g->options, &choice, &g->profile, g->model,
				   &prep, &no_files, &g->node, err);
	return r < 0 ? r : open_device(g, err);
}

int gpemu_gpu_open(const char *const options[], struct gpemu_gpu **ret,
		   char *error, size_t n)
{
	struct gpemu_gpu *g = calloc(1, sizeof(*g));
	struct err err = { 0 };
	int r = g ? open_gpu(g, options, &err) : -ENOMEM;

	*ret = r < 0 ? NULL : g;
	if (r < 0) {
		lib_tell(r, &err, error, n);
		gpemu_gpu_close(g);
	}
	return r;
}

void gpemu_gpu_close(struct gpemu_gpu *g)
{
	if (!g)
		return;
	device_close(g->device);
	tick_free(g->tick);
	train_node_close(&g->node);
	gpu_profile_free(&g->profile);
	conf_free(train_fields, &g->options);
	free(g);
}

const char *gpemu_gpu_error(const struct gpemu_gpu *g)
{
	return g->err.text;
}

/* Submit a batch that is in host memory; returns when the next may follow. */
static int step(struct gpemu_gpu *g, uint32_t samples, struct err *err)
{
	uint64_t bytes = gpu_sample_bytes(&g->profile, g->model);
	struct device_batch b = { .samples = samples,
				  .bytes = samples * bytes,
				  .ready_ns = tick_now(g->tick) };
	struct device_part part[GPUS_MAX] = { 0 };
	bool whole = g->node.gpus.parallel == GPUS_DP;
	uint32_t n = g->node.gpus.n;
	struct gpu_step copy;
	int r = whole ? device_copy(g->device, 0, &b, &copy, err) : 0;

	for (uint32_t i = 0; r == 0 && i < n; i++) {
		part[i].samples = b.samples = gpus_cut(samples, n, i);
		part[i].bytes = b.bytes = b.samples * bytes;
		if (b.samples && !whole)
			r = device_copy(g->device, i, &b, &copy, err);
	}
	if (r < 0)
		return r;
	device_submit(g->device, part, NULL);
	return device_room(g->device, n, err);
}

int gpemu_gpu_submit(struct gpemu_gpu *g, uint64_t n_samples,
		     struct gpemu_step *ret)
{
	struct err err = { 0 };
	int r = -EINVAL;

	if (n_samples == 0)
		err_set(&err, r, "a step needs samples");
	else if (n_samples > UINT32_MAX)
		r = err_set(&err, -ERANGE, "a step of %llu samples",
			    (unsigned long long)n_samples);
	else
		r = check(g, n_samples, &err);
	if (r == 0)
		r = step(g, (uint32_t)n_samples, &err);
	if (r < 0) {
		g->err = err;
		return r;
	}
	if (ret)
		*ret = lib_step(&g->step);
	return 0;
}

uint64_t gpemu_gpu_wait(struct gpemu_gpu *g)
{
	uint64_t end = g->device->idle_ns;

	tick_wait(g->tick, end);
	return end;
}

uint64_t gpemu_gpu_now_ns(const struct gpemu_gpu *g)
{
	return tick_now(g->tick);
}
