/* SPDX-License-Identifier: MIT */
/*
 * The GPUs of this process. A step's times follow from its copies' (gpus.h),
 * so it is reported when it is submitted; what remains is to wait.
 *
 * If other nodes take part in a step, its end follows from theirs, too. While
 * they compute, this node gets its next batch: the step is settled before
 * anything that begins after it.
 */
#include <stdlib.h>

#include "common/rng.h"
#include "common/units.h"
#include "common/util.h"
#include "emu/gpu/device.h"

struct local {
	struct device device;
	struct gpus gpus;
	struct rng rng[GPUS_MAX];
	uint64_t n_steps;		/* submitted */
	struct gpu_step step[GPUS_MAX]; /* on its way */

	/* a step that waits for other nodes */
	bool open;
	uint32_t used;
	struct device_step report;
	int failed; /* why they do not come; 0: they do */
	struct err why;
};

static struct local *local_of(struct device *d)
{
	return container_of(d, struct local, device);
}

static void local_close(struct device *d)
{
	free(local_of(d));
}

static int local_start(struct device *d, uint64_t *ret_load_ns, struct err *err)
{
	const struct device_job *j = &d->job;
	uint64_t start = tick_now(j->tick), end;
	struct local *l = local_of(d);

	(void)err;
	if (!j->load)
		return 0;
	gpus_init(&l->gpus, j->gpus, start);
	end = gpus_load_model(&l->gpus, start, gpu_model_transfer_ns(j->model),
			      j->model->parameters * sizeof(float));
	tick_wait(j->tick, end);
	*ret_load_ns = end - start;
	return 0;
}

static void local_begin(struct device *d, uint64_t epoch)
{
	const struct device_job *j = &d->job;
	struct local *l = local_of(d);

	d->idle_ns = tick_now(j->tick);
	gpus_init(&l->gpus, j->gpus, d->idle_ns);
	for (uint32_t i = 0; i < j->gpus->n; i++)
		l->rng[i] = device_rng(j, epoch, i);
}

struct rng device_rng(const struct device_job *j, uint64_t epoch, uint32_t i)
{
	return rng_stream(j->seed, "jitter",
			  (j->node << 32) + epoch * GPUS_MAX + i);
}

struct gpus_part device_part_of(const struct device_job *j, uint32_t samples,
				uint64_t bytes)
{
	struct gpus_part p = gpus_compute_of(j->gpu, j->model, samples, bytes);

	if (j->step && samples)
		gpus_set_compute(&p, dist_time_mean(j->step));
	if (j->prep_gpu && samples)
		p.prep_ns = prep_profile_gpu_ns(j->prep_gpu, samples);
	if (j->inference)
		p.backward_ns = p.optimizer_ns = 0;
	if (j->gpus->parallel == GPUS_FSDP && samples)
		p.sharded_ns = fsdp_exposed_ns(&j->gpus->fsdp, p.forward_ns,
					       p.backward_ns);
	return p;
}

bool device_accumulates(const struct device_job *j, uint64_t n,
			struct gpus_part *part)
{
	if (j->accumulate < 2 || (n + 1) % j->accumulate == 0)
		return false;
	for (uint32_t i = 0; i < j->gpus->n; i++)
		part[i].optimizer_ns = 0;
	return true;
}

void device_warm_up(const struct device_job *j, uint64_t n,
		    struct gpus_part *part)
{
	const struct conf_list *l = &j->model->warmup_ms;
	const double *ms = l->items;

	if (n >= l->n || j->step || j->inference)
		return;
	for (uint32_t i = 0; i < j->gpus->n; i++)
		part[i].warmup_ns = (uint64_t)(ms[n] * NS_PER_MS);
}

uint64_t device_local_ns(const struct device_job *j, uint64_t bytes)
{
	struct gpus_part c = gpus_copy_of(j->gpu, j->model, bytes, j->pinned);
	struct gpus_part p = device_part_of(j, j->batch, bytes);

	return c.copy_ns + p.prep_ns + p.forward_ns + p.backward_ns +
	       p.sharded_ns + p.optimizer_ns;
}

/* Wait for the other nodes, then report the step. */
static int settle_step(struct local *l)
{
	struct device *d = &l->device;
	struct gpus_reach all;
	uint64_t reduced;

	if (!l->open)
		return l->failed;
	l->open = false;
	l->failed = d->events.reduced(d->events.ctx, &all, &reduced, &l->why);
	if (l->failed < 0)
		return l->failed;
	d->idle_ns = gpus_reduced(&l->gpus, l->used, &all, reduced, l->step);
	d->events.done(d->events.ctx, &l->report);
	return 0;
}

static int settled(struct local *l, struct err *err)
{
	int r = settle_step(l);

	return r < 0 ? err_set(err, r, "%s", l->why.text) : 0;
}

static int local_copy(struct device *d, uint32_t gpu,
		      const struct device_batch *b, struct gpu_step *ret,
		      struct err *err)
{
	const struct device_job *j = &d->job;
	struct local *l = local_of(d);
	struct gpus_part part =
		gpus_copy_of(j->gpu, j->model, b->bytes, j->pinned);
	uint64_t staged;
	int r = settled(l, err);

	if (r < 0)
		return r;
	if (b->stage) {
		tick_wait(d->job.tick,
			  MAX(b->ready_ns, gpu_room(&l->gpus.gpu[gpu])));
		staged = b->stage(d->job.tick, b->memory);
		part.copy_ns = MAX(part.copy_ns, staged);
	}
	gpus_copy(&l->gpus, gpu, b->ready_ns, &part, &l->step[gpu]);
	*ret = l->step[gpu];
	return 0;
}

void device_vary(const struct device_job *j, struct rng *rng,
		 struct gpus_part *p)
{
	double mean = j->step ? dist_time_mean(j->step) : 0;
	double x = mean > 0 ? (double)dist_time_draw(j->step, rng) / mean
			    : gpu_jitter(rng, j->jitter);

	p->forward_ns = (uint64_t)((double)p->forward_ns * x);
	p->backward_ns = (uint64_t)((double)p->backward_ns * x);
	p->optimizer_ns = (uint64_t)((double)p->optimizer_ns * x);
}

/* The optimiser takes as long for any batch. */
static void shorten(struct gpus_part *p, double shorter)
{
	p->forward_ns -= (uint64_t)((double)p->forward_ns * shorter);
	p->backward_ns -= (uint64_t)((double)p->backward_ns * shorter);
}

static void submit_with_nodes(struct local *l, const struct gpus_part *cost)
{
	struct device *d = &l->device;
	struct gpus_reach reach;

	gpus_compute(&l->gpus, l->used, cost, l->step, &reach);
	l->open = true;
	d->events.reach(d->events.ctx, &l->report, &reach);
}

static void local_submit(struct device *d, const struct device_part *part,
			 void *user)
{
	struct local *l = local_of(d);
	struct gpus_part cost[GPUS_MAX];

	if (settle_step(l) < 0)
		return; /* the next call says so */
	l->report = (struct device_step){ .user = user,
					  .idle_ns = d->idle_ns,
					  .gpu = l->step };
	l->used = 0;
	for (uint32_t i = 0; i < d->job.gpus->n; i++) {
		cost[i] =
			device_part_of(&d->job, part[i].samples, part[i].bytes);
		shorten(&cost[i], part[i].shorter);
		device_vary(&d->job, &l->rng[i], &cost[i]);
		l->used += part[i].samples > 0;
	}
	device_warm_up(&d->job, l->n_steps, cost);
	l->gpus.accumulates = device_accumulates(&d->job, l->n_steps++, cost);
	if (d->events.reach) {
		submit_with_nodes(l, cost);
		return;
	}
	d->idle_ns = gpus_step(&l->gpus, l->used, cost, l->step);
	if (d->events.done)
		d->events.done(d->events.ctx, &l->report);
}

/* When the last GPU begins to compute: all copies are over by then. */
static uint64_t all_begin(const struct local *l)
{
	uint64_t at = 0;

	for (uint32_t i = 0; i < l->device.job.gpus->n; i++)
		at = MAX(at, l->step[i].compute_start);
	return at;
}

static int local_room(struct device *d, uint32_t n, struct err *err)
{
	struct local *l = local_of(d);
	uint64_t room = 0;
	int r;

	tick_wait(d->job.tick, all_begin(l));
	if (d->events.begun)
		d->events.begun(d->events.ctx, tick_now(d->job.tick));
	/* overlapped, there is room once the step has begun */
	r = d->job.gpus->transfer == GPU_TRANSFER_BLOCKING ? settled(l, err)
							   : l->failed;
	if (r < 0)
		return err_set(err, r, "%s", l->why.text);
	for (uint32_t i = 0; i < n; i++)
		room = MAX(room, gpu_room(&l->gpus.gpu[i]));
	tick_wait(d->job.tick, room);
	return 0;
}

static int local_drain(struct device *d, struct err *err)
{
	return settled(local_of(d), err);
}

static void local_hold(struct device *d, uint64_t until)
{
	struct local *l = local_of(d);

	gpus_hold(&l->gpus, until);
	d->idle_ns = l->gpus.gpu[0].compute_end;
}

static const struct device_ops device_local = {
	.name = "local",
	.close = local_close,
	.start = local_start,
	.begin = local_begin,
	.copy = local_copy,
	.submit = local_submit,
	.room = local_room,
	.drain = local_drain,
	.hold = local_hold,
};

struct device *device_local_new(void)
{
	struct local *l = calloc(1, sizeof(*l));

	if (l)
		l->device.ops = &device_local;
	return l ? &l->device : NULL;
}
