/* SPDX-License-Identifier: MIT */
/* GPUs without a loader. */
#include <errno.h>
#include <string.h>

#include "common/tick.h"
#include "common/util.h"
#include "lib/options.h"
#include "lib/private.h"
#include "loader/train/train_node.h"

extern const struct prep_ops prep_none;

struct gpemu_gpu {
	struct train_options options;
	struct gpu_profile profile;
	const struct gpu_model *model;
	struct train_node node;
	struct tick *tick;
	struct gpus gpus;
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

static int open_gpu(struct gpemu_gpu *g, const char *const options[],
		    struct err *err)
{
	static const char *const keys[] = {
		"gpu",	       "model",	     "batch", "transfer", "pin",
		"extrapolate", "gpus",	     "node",  "parallel", "allreduce",
		"time_scale",  "keep_awake", NULL
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
	g->model = gpu_profile_model(&g->profile, g->options.model, err);
	if (!g->model)
		return -ENOENT;
	r = train_node_open(&g->options, &choice, &g->profile, g->model, &prep,
			    &g->node, err);
	if (r == 0)
		r = train_node_fit(&g->options, &choice, &g->profile, g->model,
				   &prep, &no_files, &g->node, err);
	if (r < 0)
		return r;
	g->tick = tick_new(g->options.time_scale, TICK_DEFAULT_SPIN_NS);
	if (!g->tick)
		return err_set(err, -ENOMEM, "out of memory");
	if (g->options.keep_awake)
		tick_keep_awake(g->tick); /* where it is granted */
	gpus_init(&g->gpus, &g->node.gpus, tick_now(g->tick));
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
	train_node_close(&g->node);
	gpu_profile_free(&g->profile);
	conf_free(train_fields, &g->options);
	free(g);
}

const char *gpemu_gpu_error(const struct gpemu_gpu *g)
{
	return g->err.text;
}

/* A batch that is in host memory now; when the next one may be. */
static uint64_t step(struct gpemu_gpu *g, uint32_t samples,
		     struct gpu_step *ret)
{
	uint32_t n = g->node.gpus.n, used = 0;
	bool whole = g->node.gpus.parallel == GPUS_DP;
	struct gpu_step s[GPUS_MAX] = { { 0 } };
	struct gpus_part part[GPUS_MAX], all;
	uint64_t now = tick_now(g->tick), room = 0;
	uint64_t bytes = gpu_sample_bytes(&g->profile, g->model);

	all = gpus_part_of(&g->profile, g->model, samples, samples * bytes,
			   g->options.pin);
	if (whole)
		gpus_copy(&g->gpus, 0, now, &all, &s[0]);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t cut = gpus_cut(samples, n, i);

		part[i] = gpus_part_of(&g->profile, g->model, cut, cut * bytes,
				       g->options.pin);
		used += cut > 0;
		if (cut && !whole)
			gpus_copy(&g->gpus, i, now, &part[i], &s[i]);
	}
	gpus_step(&g->gpus, used, part, s);
	for (uint32_t i = 0; i < n; i++)
		room = MAX(room, gpu_room(&g->gpus.gpu[i]));
	*ret = s[0];
	return room;
}

int gpemu_gpu_submit(struct gpemu_gpu *g, uint64_t n_samples,
		     struct gpemu_step *ret)
{
	struct err err = { 0 };
	struct gpu_step s;
	uint64_t room;
	int r = -EINVAL;

	if (n_samples == 0)
		err_set(&err, r, "a step needs samples");
	else if (n_samples > UINT32_MAX)
		r = err_set(&err, -ERANGE, "a step of %llu samples",
			    (unsigned long long)n_samples);
	else
		r = check(g, n_samples, &err);
	if (r < 0) {
		g->err = err;
		return r;
	}
	room = step(g, (uint32_t)n_samples, &s);
	if (ret)
		*ret = lib_step(&s);
	tick_wait(g->tick, room);
	return 0;
}

uint64_t gpemu_gpu_wait(struct gpemu_gpu *g)
{
	uint64_t end = g->gpus.gpu[0].compute_end;

	tick_wait(g->tick, end);
	return end;
}

uint64_t gpemu_gpu_now_ns(const struct gpemu_gpu *g)
{
	return tick_now(g->tick);
}
