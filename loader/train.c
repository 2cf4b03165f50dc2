/* SPDX-License-Identifier: MIT */
#include "loader/train.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/units.h"
#include "common/util.h"
#include "loader/step_log.h"

/* Of the ceiling's run. arbitrary: enough steps to average over, short enough
 * not to be noticed before a training run */
enum { CEILING_STEPS = 20 };
#define CEILING_WALL_NS (NS_PER_S / 2)

extern const struct engine_ops engine_null;
extern const struct prep_ops prep_none;

struct cost {
	uint64_t copy_ns, compute_ns;
};

static struct cost cost_of(const struct train *t, uint32_t n)
{
	struct gpu_cost c;

	gpu_profile_cost(t->gpu, t->model, n, &c);
	return (struct cost){
		.copy_ns = t->pinned ? c.transfer_pinned_ns
				     : c.transfer_pageable_ns,
		.compute_ns = c.forward_ns + c.backward_ns,
	};
}

/* A stall of the GPU on the timeline; returns where the next one begins. */
static uint64_t show_stall(struct train *t, const char *name, uint64_t from,
			   uint64_t ns, uint64_t step)
{
	if (ns)
		trace_slice(t->trace, TRACE_IDLE, name, from, from + ns,
			    "\"step\":%" PRIu64, step);
	return from + ns;
}

/* To the timeline and the log of steps, where there are any. */
static void show(struct train *t, const struct account *a, uint64_t idle,
		 const struct delivery *d, const struct gpu_step *s)
{
	struct stalls stalls = account_stalls(idle, d, s);
	uint64_t n = a->steps - 1, at = idle;

	if (t->step_log)
		step_log_add(t->step_log, a->epoch, n, idle, d, s);
	if (!t->trace)
		return;
	at = show_stall(t, "fetch", at, stalls.fetch_ns, n);
	at = show_stall(t, "prep", at, stalls.prep_ns, n);
	at = show_stall(t, "pin", at, stalls.pin_ns, n);
	show_stall(t, "transfer", at, s->transfer_stall_ns, n);
	if (d->pin_ns)
		trace_slice(t->trace, TRACE_PIN, "pin", d->ready_ns - d->pin_ns,
			    d->ready_ns, "\"step\":%" PRIu64, n);
	trace_slice(t->trace, TRACE_COPY, "copy", s->copy_start, s->copy_end,
		    "\"step\":%" PRIu64 ",\"bytes\":%" PRIu64, n,
		    d->batch_bytes);
	trace_slice(t->trace, TRACE_COMPUTE, "step", s->compute_start,
		    s->compute_end,
		    "\"step\":%" PRIu64 ",\"epoch\":%" PRIu64 ",\"samples\":%u",
		    n, a->epoch, d->n);
	trace_counter(t->trace, "batches ready", s->copy_start, d->queued);
}

/* Of the staging buffer. arbitrary: stays in the second-level cache, which
 * is why drivers stage piece by piece */
enum { STAGE_BYTES = 64 * 1024 };

/*
 * From pageable memory a device cannot read: the driver copies the batch
 * piece by piece into a buffer of its own, on the thread that asked. That
 * copy is real; the profile's time of the transfer holds its cost, and is
 * waited for beyond it. Returns the emulated ns it took.
 */
static uint64_t stage(struct train *t, const struct delivery *d)
{
	uint64_t start = tick_now(t->tick);
	char piece[STAGE_BYTES];

	for (uint32_t i = 0; i < d->n; i++)
		for (size_t at = 0; at < d->place[i].n; at += STAGE_BYTES) {
			size_t n = MIN(STAGE_BYTES, d->place[i].n - at);

			memcpy(piece, (const char *)d->place[i].data + at, n);
			/* somebody may look at it */
			__asm__ volatile("" ::"r"(piece) : "memory");
		}
	return tick_now(t->tick) - start;
}

/* True: the model's state is to be saved now. */
static bool step(struct train *t, struct delivery *d, struct gpu_step *s)
{
	struct cost c = cost_of(t, d->n);
	struct gpu *g = &t->now.gpu;
	struct account *a = t->now.account;
	uint64_t idle = g->compute_end, now;

	if (!t->pinned && d->place) {
		tick_wait(t->tick, MAX(d->ready_ns, gpu_room(g)));
		c.copy_ns = MAX(c.copy_ns, stage(t, d));
	}
	gpu_submit(g, d->ready_ns, c.copy_ns, c.compute_ns, s);
	account_step(a, idle, d, s);
	show(t, a, idle, d, s);
	if (t->taken)
		t->taken(t->ctx, d);
	tick_wait(t->tick, s->copy_end);
	pipeline_release(t->pipeline, d);
	tick_wait(t->tick, s->compute_start);
	now = tick_now(t->tick);
	if (a->steps == 1)
		t->now.first_end_ns = s->compute_end;
	else
		hist_add(&a->step, now - t->now.begun_ns);
	t->now.begun_ns = now;
	tick_wait(t->tick, gpu_room(g));
	return t->stepped && t->stepped(t->ctx);
}

/* Once the step is computed; no other begins before it is saved. */
static int save(struct train *t, struct err *err)
{
	struct gpu *g = &t->now.gpu;
	struct account *a = t->now.account;
	uint64_t from = g->compute_end;
	int r;

	tick_wait(t->tick, from);
	r = t->save(t->ctx, err);
	gpu_hold(g, tick_now(t->tick));
	a->checkpoint_stall_ns += g->compute_end - from;
	show_stall(t, "checkpoint", from, g->compute_end - from, a->steps - 1);
	return r;
}

void train_begin(struct train *t, uint64_t epoch, const uint32_t *order,
		 uint64_t n, struct account *account)
{
	t->now = (struct train_now){ .account = account,
				     .start_ns = tick_now(t->tick),
				     .wall_ns = tick_wall() };
	memset(account, 0, sizeof(*account));
	account->epoch = epoch;
	gpu_init(&t->now.gpu, t->transfer, t->now.start_ns);
	pipeline_begin(t->pipeline, epoch, order, n);
}

int train_next(struct train *t, struct delivery *ret, struct err *err)
{
	return pipeline_next(t->pipeline, t->now.gpu.compute_end, ret, err);
}

int train_step(struct train *t, struct delivery *d, struct gpu_step *ret,
	       struct err *err)
{
	return step(t, d, ret) ? save(t, err) : 0;
}

int train_end(struct train *t, int r)
{
	struct account *a = t->now.account;
	uint64_t end;

	tick_wait(t->tick, t->now.gpu.compute_end);
	end = tick_now(t->tick);
	if (a->steps)
		hist_add(&a->step, end - t->now.begun_ns);
	if (a->steps > 1)
		a->au_elapsed_ns = end - t->now.first_end_ns;
	a->elapsed_ns = end - t->now.start_ns;
	a->wall_ns = tick_wall() - t->now.wall_ns;
	if (r == -ECANCELED)
		pipeline_join(t->pipeline);
	if (r == -ENODATA || r == -ECANCELED)
		pipeline_work(t->pipeline, &a->work);
	return r == -ENODATA ? 0 : r;
}

static int run_ceiling(struct train *t, uint32_t batch, struct ceiling *ret,
		       struct err *err)
{
	struct pipeline_config c = { .engine = &engine_null,
				     .prep = &prep_none,
				     .tick = t->tick,
				     .batch = batch };
	_cleanup_free_ struct account *a = malloc(sizeof(*a));
	struct delivery d;
	struct gpu_step s;
	int r;

	if (!a)
		return err_set(err, -ENOMEM, "out of memory");
	r = pipeline_new(&c, &t->pipeline, err);
	if (r < 0)
		return r;
	train_begin(t, 0, NULL, (uint64_t)CEILING_STEPS * batch, a);
	while ((r = train_next(t, &d, err)) == 0 &&
	       (r = train_step(t, &d, &s, err)) == 0)
		;
	r = train_end(t, r);
	pipeline_free(t->pipeline);
	ret->samples_per_s = account_samples_per_s(a);
	ret->au = account_au(a);
	ret->steps = a->steps;
	return r;
}

int train_ceiling(const struct train *like, uint32_t batch, double time_scale,
		  struct ceiling *ret, struct err *err)
{
	struct train t = *like;
	struct cost c = cost_of(&t, batch);
	double ns = (double)(c.copy_ns + c.compute_ns) * CEILING_STEPS;
	int r;

	ret->time_scale = MIN(time_scale, (double)CEILING_WALL_NS / ns);
	t.taken = NULL;
	t.stepped = NULL;
	t.trace = NULL;
	t.step_log = NULL;
	t.tick = tick_new(ret->time_scale, TICK_DEFAULT_SPIN_NS);
	if (!t.tick)
		return err_set(err, -ENOMEM, "out of memory");
	r = run_ceiling(&t, batch, ret, err);
	tick_free(t.tick);
	return r;
}
