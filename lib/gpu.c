/* SPDX-License-Identifier: MIT */
/* The GPU without a loader. */
#include <errno.h>
#include <string.h>

#include "common/tick.h"
#include "common/util.h"
#include "emu/gpu.h"
#include "lib/options.h"
#include "lib/private.h"

struct gpemu_gpu {
	struct train_options options;
	struct gpu_profile profile;
	const struct gpu_model *model;
	struct tick *tick;
	struct gpu gpu;
	struct err err;
};

static int check(struct gpemu_gpu *g, uint64_t n, struct err *err)
{
	return gpu_check_batch(&g->profile, g->model, n, g->options.extrapolate,
			       err);
}

static int open_gpu(struct gpemu_gpu *g, const char *const options[],
		    struct err *err)
{
	static const char *const keys[] = { "gpu",	  "model",
					    "batch",	  "transfer",
					    "pin",	  "extrapolate",
					    "time_scale", NULL };
	enum gpu_transfer transfer;
	int r;

	train_options_init(&g->options);
	r = options_set(&g->options, options, keys, err);
	if (r == 0)
		r = gpu_transfer_parse(g->options.transfer, &transfer, err);
	if (r == 0)
		r = train_options_pin(&g->options, err);
	if (r == 0)
		r = gpu_profile_load(g->options.gpu ? g->options.gpu
						    : TRAIN_DEFAULT_GPU,
				     &g->profile, err);
	if (r < 0)
		return r;
	g->model = gpu_profile_model(&g->profile, g->options.model, err);
	if (!g->model)
		return -ENOENT;
	r = check(g, g->options.batch, err);
	if (r < 0)
		return r;
	g->tick = tick_new(g->options.time_scale, TICK_DEFAULT_SPIN_NS);
	if (!g->tick)
		return err_set(err, -ENOMEM, "out of memory");
	gpu_init(&g->gpu, transfer, tick_now(g->tick));
	return 0;
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
	tick_free(g->tick);
	gpu_profile_free(&g->profile);
	conf_free(train_fields, &g->options);
	free(g);
}

const char *gpemu_gpu_error(const struct gpemu_gpu *g)
{
	return g->err.text;
}

int gpemu_gpu_submit(struct gpemu_gpu *g, uint64_t n_samples,
		     struct gpemu_step *ret)
{
	struct err err = { 0 };
	struct gpu_step s;
	struct gpu_cost c;
	int r = -EINVAL;

	if (n_samples == 0)
		err_set(&err, r, "a step needs samples");
	else
		r = check(g, n_samples, &err);
	if (r < 0) {
		g->err = err;
		return r;
	}
	gpu_profile_cost(&g->profile, g->model, n_samples, &c);
	gpu_submit(&g->gpu, tick_now(g->tick),
		   g->options.pin ? c.transfer_pinned_ns
				  : c.transfer_pageable_ns,
		   c.forward_ns + c.backward_ns, &s);
	if (ret)
		*ret = lib_step(&s);
	tick_wait(g->tick, gpu_room(&g->gpu));
	return 0;
}

uint64_t gpemu_gpu_wait(struct gpemu_gpu *g)
{
	tick_wait(g->tick, g->gpu.compute_end);
	return g->gpu.compute_end;
}

uint64_t gpemu_gpu_now_ns(const struct gpemu_gpu *g)
{
	return tick_now(g->tick);
}
