/* SPDX-License-Identifier: MIT */
/* GPUs without a loader. */
#include <errno.h>
#include <pthread.h>

#include "common/tick.h"
#include "common/util.h"
#include "emu/gpu/device.h"
#include "lib/options.h"
#include "lib/private.h"
#include "loader/options/train_gpu.h"
#include "loader/options/train_model.h"
#include "loader/options/train_node.h"
#include "loader/options/train_resolve.h"
#include "loader/options/train_table.h"

extern const struct prep_ops prep_none;

struct gpemu_gpu {
	struct train_options options;
	struct gpu_profile profile;
	const struct gpu_model *model;
	struct train_node node;
	struct tick *tick;
	pthread_mutex_t lock; /* `device`, until it is started, and `stop` */
	struct device *device;
	bool stop;	      /* interrupted */
	struct gpu_step step; /* the last one that was reported */
	bool reported;	      /* in this call */
	struct err err;
};

/* `n` samples for all of them. */
static int check_batch(struct gpemu_gpu *g, uint64_t n, struct err *err)
{
	uint64_t gpus = g->options.gpus, most = g->options.batch * gpus;

	/* a server has admitted the job with the memory of its batch */
	if (g->device->ops->shared && n > most)
		return err_set(err, -E2BIG,
			       "a batch of %llu samples: the server has "
			       "reserved memory for %llu; open the GPU with a "
			       "larger batch",
			       (unsigned long long)n, (unsigned long long)most);
	return gpu_check_batch(&g->profile, g->model, &g->node.beside,
			       n / gpus + (n % gpus > 0),
			       g->options.extrapolate, err);
}

static void done(void *ctx, const struct device_step *s)
{
	struct gpemu_gpu *g = ctx;

	g->step = s->gpu[0];
	g->reported = true;
}

/* Like find_device of a run: gpemu_gpu_interrupt may come at any time. */
static int find_device(struct gpemu_gpu *g, struct err *err)
{
	struct device *d;
	int r = train_gpu_open(&g->options, &d, err);

	if (r < 0)
		return r;
	pthread_mutex_lock(&g->lock);
	g->device = d;
	if (g->stop)
		device_interrupt(d);
	pthread_mutex_unlock(&g->lock);
	return 0;
}

static int start_device(struct gpemu_gpu *g, struct err *err)
{
	const struct train_options *o = &g->options;
	struct device_job job = {
		.gpu = &g->profile,
		.model = g->model,
		.gpus = &g->node.gpus,
		.batch = (uint32_t)o->batch,
		.pinned = o->pin,
		.waiting_bytes = gpu_waiting_bytes(&g->node.beside, o->batch),
		.bucket_bytes = g->node.beside.bucket_bytes,
		.extrapolate = o->extrapolate,
		.jitter = g->node.jitter,
		.seed = o->common.seed,
	};
	uint64_t load_ns;
	int r;

	g->tick = tick_new(o->time_scale, TICK_DEFAULT_SPIN_NS);
	if (!g->tick)
		return err_set(err, -ENOMEM, "out of memory");
	if (o->keep_awake)
		tick_keep_awake(g->tick); /* where it is granted */
	job.tick = g->tick;
	g->device->events = (struct device_events){ .done = done, .ctx = g };
	r = device_start(g->device, &job, &load_ns, err);
	if (r == -ECANCELED)
		return err_set(err, r, "interrupted while waiting for the GPU");
	if (r < 0)
		return r;
	device_begin(g->device, 0);
	return 0;
}

static int open_gpu(struct gpemu_gpu *g, const char *const options[],
		    struct err *err)
{
	static const char *const keys[] = {
		"gpu",	      "model",	     "batch",	   "transfer",
		"pin",	      "extrapolate", "gpus",	   "node",
		"parallel",   "allreduce",   "precision",  "sequence_length",
		"time_scale", "keep_awake",  "gpu_server", "server_user",
		"gpu_memory", "gpu_rate",    "jitter",	   "seed",
		NULL
	};
	struct train_choice choice = { .prep = &prep_none };
	const struct train_prep prep = { 0 };
	const struct dataset no_files = { .dirfd = -1 };
	int r;

	r = options_set(&g->options, options, keys, err);
	if (r == 0)
		r = gpu_transfer_parse(g->options.transfer, &choice.transfer,
				       err);
	if (r == 0)
		r = train_options_pin(&g->options, err);
	if (r == 0)
		r = train_gpu_given(&g->options, err);
	if (r == 0)
		r = train_node_resolve(&g->options, &choice, err);
	if (r == 0)
		r = find_device(g, err);
	if (r == 0)
		r = train_gpu_load(&g->options, &g->profile, err);
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
	return r < 0 ? r : start_device(g, err);
}

int gpemu_gpu_new(struct gpemu_gpu **ret)
{
	struct gpemu_gpu *g = calloc(1, sizeof(*g));

	*ret = g;
	if (!g)
		return -ENOMEM;
	pthread_mutex_init(&g->lock, NULL);
	train_options_init(&g->options);
	return 0;
}

/* Keeps the text; returns r. */
static int fail_gpu(struct gpemu_gpu *g, int r, const struct err *err)
{
	lib_tell(r, err, g->err.text, sizeof(g->err.text));
	return r;
}

int gpemu_gpu_start(struct gpemu_gpu *g, const char *const options[])
{
	struct err err = { 0 };
	int r = open_gpu(g, options, &err);

	return r < 0 ? fail_gpu(g, r, &err) : 0;
}

int gpemu_gpu_open(const char *const options[], struct gpemu_gpu **ret,
		   char *error, size_t n)
{
	const struct err none = { 0 };
	struct gpemu_gpu *g;
	int r = gpemu_gpu_new(&g);

	*ret = NULL;
	if (r == 0)
		r = gpemu_gpu_start(g, options);
	if (r == 0) {
		*ret = g;
		return 0;
	}
	lib_tell(r, g ? &g->err : &none, error, n);
	gpemu_gpu_close(g);
	return r;
}

void gpemu_gpu_interrupt(struct gpemu_gpu *g)
{
	pthread_mutex_lock(&g->lock);
	g->stop = true;
	device_interrupt(g->device);
	pthread_mutex_unlock(&g->lock);
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
	pthread_mutex_destroy(&g->lock);
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
	struct gpu_step copy = { 0 }, first;
	int r;

	tick_thread(); /* another one may have opened the GPU */
	g->reported = false;
	r = whole ? device_copy(g->device, 0, &b, &copy, err) : 0;
	first = copy;

	for (uint32_t i = 0; r == 0 && i < n; i++) {
		part[i].samples = b.samples = gpus_cut(samples, n, i);
		part[i].bytes = b.bytes = b.samples * bytes;
		if (b.samples && !whole)
			r = device_copy(g->device, i, &b, i ? &copy : &first,
					err);
	}
	if (r < 0)
		return r;
	device_submit(g->device, part, NULL);
	r = device_room(g->device, n, err);
	/* until a server reports a step, its copy is known */
	if (!g->reported)
		g->step = first;
	return r;
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
		r = check_batch(g, n_samples, &err);
	if (r == 0)
		r = step(g, (uint32_t)n_samples, &err);
	if (r < 0)
		return fail_gpu(g, r, &err);
	if (ret)
		*ret = lib_step(&g->step);
	return 0;
}

int gpemu_gpu_drain(struct gpemu_gpu *g, struct gpemu_step *ret)
{
	struct err err = { 0 };
	int r = device_drain(g->device, &err);

	tick_wait(g->tick, g->device->idle_ns);
	if (r < 0)
		return fail_gpu(g, r, &err);
	if (ret)
		*ret = lib_step(&g->step);
	return 0;
}

uint64_t gpemu_gpu_wait(struct gpemu_gpu *g)
{
	gpemu_gpu_drain(g, NULL);
	return g->device->idle_ns;
}

uint64_t gpemu_gpu_now_ns(const struct gpemu_gpu *g)
{
	return tick_now(g->tick);
}
