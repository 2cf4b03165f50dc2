/* SPDX-License-Identifier: MIT */
#include "common/thread.h"
#include "service/worker/task_own.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"

static bool is_current(const struct task *t)
{
	return !t->stopping && t->now == t->turn;
}

/* Under the lock: is there something to do? */
static bool has_work(const struct task *t)
{
	return !is_current(t) || t->n_given > t->added ||
	       (t->begun && t->c.mode == SPLIT_OFF) ||
	       (t->pipeline && pipeline_left(t->pipeline));
}

/* A pipeline for the epoch. */
static int begin_epoch(struct task *t, struct err *err)
{
	struct pipeline_config c = stages_pipeline(&t->stages, t->c.tick);
	struct pipeline *old, *fresh = NULL;
	uint64_t samples, turn;
	int r = 0;

	pthread_mutex_lock(&t->lock);
	t->current = t->epoch;
	samples = t->samples;
	turn = t->turn;
	old = TAKE_PTR(t->pipeline);
	pthread_mutex_unlock(&t->lock);
	pipeline_free(old);
	t->pass = t->added = t->n_in = 0;
	memset(t->clock, 0, t->n_clocks * sizeof(*t->clock));
	if (samples > t->stages.schedule.n)
		return err_set(err, -EINVAL,
			       "an epoch of more samples than there are");
	if (t->c.mode != SPLIT_OFF)
		r = stages_order(&t->stages, t->current, err);
	if (r == 0)
		r = pipeline_new(&c, &fresh, err);
	pthread_mutex_lock(&t->lock);
	t->pipeline = fresh;
	t->now = turn;
	pthread_mutex_unlock(&t->lock);
	return r;
}

struct range {
	uint64_t first, n; /* in the order */
};

/* The next split that was given; false: none. */
static bool take_split(struct task *t, struct range *ret)
{
	bool taken;

	LOCK_SCOPE(&t->lock);
	taken = is_current(t) && t->added < t->n_given;
	if (taken) {
		uint32_t split = t->split[t->added++];

		*ret = (struct range){ splits_first(&t->splits, split),
				       splits_samples(&t->splits, split) };
	}
	return taken;
}

/* Start the stages on `n` samples, in batches. */
static void add_samples(struct task *t, const uint32_t *order, uint64_t n)
{
	t->n_in += (n + t->c.batch - 1) / t->c.batch;
	pipeline_add(t->pipeline, t->current, order, n);
}

/* An order of its own. */
static void begin_pass(struct task *t)
{
	stages_own_order(&t->stages, t->current, t->c.worker, t->pass++);
}

/* As add_splits. */
static void add_rounds(struct task *t)
{
	const struct stages *s = &t->stages;
	uint32_t n = t->c.share.consumers * t->c.batch;
	uint64_t spread;

	while (t->n_in < t->windows) {
		const uint32_t *order = buckets_next(t->buckets, &spread);

		if (!order) {
			begin_pass(t);
			buckets_begin(t->buckets, s->schedule.order, s->data.n);
			continue;
		}
		add_samples(t, order, n);
		__atomic_fetch_add(&t->c.totals->n_rounds, 1, __ATOMIC_RELAXED);
		__atomic_fetch_add(&t->c.totals->spread, spread,
				   __ATOMIC_RELAXED);
	}
}

/* Not more than the windows: the rest waits here. */
static void add_splits(struct task *t)
{
	struct range range;

	while (t->n_in < t->windows && take_split(t, &range))
		add_samples(t, t->stages.schedule.order + range.first, range.n);
}

/* Time that was spent since the batch before, of the clocks that only run while
 * there is work. */
static uint64_t spent(struct task *t, const struct delivery *d)
{
	uint64_t *clock = &t->clock[t->by_owner ? d->owner : 0];
	uint64_t before = *clock;

	*clock = d->spent.read_ns + d->spent.prep_ns;
	return *clock - before;
}

/* Under the lock, of the next batch: where its trainer looks for it. */
static void set_position(const struct task *t, struct task_batch *b)
{
	if (t->consumers.rounds)
		b->position = t->n_made / t->consumers.n;
	if (t->c.mode == SPLIT_OFF)
		return;
	b->position =
		(uint64_t)(pipeline_order(&b->d) - t->stages.schedule.order) /
		t->c.batch;
	b->split = (uint32_t)(b->position / t->c.per_split);
}

/* Keep a batch; the loop sends it. */
static void keep_batch(struct task *t, const struct delivery *d)
{
	uint64_t cost = spent(t, d);
	struct task_batch *b;

	pthread_mutex_lock(&t->lock);
	if (is_current(t)) {
		b = &t->batch[t->n_made % t->windows];
		*b = (struct task_batch){ .d = *d,
					  .starved_ns = t->starved_ns };
		t->starved_ns = 0;
		t->spent_ns += cost;
		set_position(t, b);
		t->n_made++;
	}
	pthread_mutex_unlock(&t->lock);
	__atomic_fetch_add(&t->c.totals->n_made, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&t->c.totals->spent_ns, cost, __ATOMIC_RELAXED);
	t->c.changed(t->c.ctx);
}

/* Wait for splits, or another epoch; false: the task ends. */
static bool wait_for_work(struct task *t)
{
	uint64_t since = tick_now(t->c.tick);
	bool more, waited = false;

	LOCK_SCOPE(&t->lock);
	while (!has_work(t)) {
		pthread_cond_wait(&t->work, &t->lock);
		waited = true;
	}
	if (waited && is_current(t))
		t->starved_ns += tick_now(t->c.tick) - since;
	more = !t->stopping;
	return more;
}

static bool has_turned(struct task *t)
{
	LOCK_SCOPE(&t->lock);

	return !is_current(t);
}

static int go_on(struct task *t, struct err *err)
{
	struct delivery d;
	int r;

	if (has_turned(t))
		return begin_epoch(t, err);
	if (t->c.mode != SPLIT_OFF) {
		add_splits(t);
	} else if (t->buckets) {
		add_rounds(t);
	} else if (pipeline_left(t->pipeline) == 0) {
		begin_pass(t);
		add_samples(t, t->stages.schedule.order, t->stages.data.n);
	}
	if (pipeline_left(t->pipeline) == 0)
		return 0;
	r = pipeline_next(t->pipeline, TICK_NEVER, &d, err);
	t->n_in -= r == 0;
	if (r == 0)
		keep_batch(t, &d);
	/* another epoch has begun, or it stops */
	return r == -ECANCELED && has_turned(t) ? 0 : r;
}

/* Rounds are of batches in the order in which they were begun. Samples are in
 * use while a batch waits for a window, and until it is released. */
static int prepare_rounds(struct task *t, const struct pipeline_config *c,
			  uint32_t windows, struct err *err)
{
	if (t->c.share.how != SHARE_ROUNDS)
		return 0;
	if (pipeline_any_order(c))
		return err_set(err, -EINVAL,
			       "coordinated reads need a --loader whose "
			       "batches leave in order");
	return buckets_new(&t->c.share, t->c.batch,
			   2 * windows + t->c.share.consumers, &t->stages.data,
			   &t->buckets, err);
}

static int prepare(struct task *t, struct err *err)
{
	struct pipeline_config c;
	struct task_batch *batch;
	uint32_t windows;
	int r = stages_open(&t->stages, t->definition, t->c.options, err);

	if (r < 0)
		return r;
	c = stages_pipeline(&t->stages, t->c.tick);
	windows = pipeline_windows(&c);
	r = prepare_rounds(t, &c, windows, err);
	if (r < 0)
		return r;
	batch = calloc(windows, sizeof(*batch));
	t->n_clocks = c.workers;
	t->clock = calloc(c.workers, sizeof(*t->clock));
	t->by_owner = c.engine->whole_batches;
	if (!batch || !t->clock) {
		free(batch);
		return err_set(err, -ENOMEM, "out of memory");
	}
	if (c.batch != t->c.batch) {
		free(batch);
		return err_set(err, -EINVAL, "a batch of another size");
	}
	pthread_mutex_lock(&t->lock);
	t->batch = batch;
	t->windows = windows;
	t->n_parallel = c.prep->cost && !t->by_owner ? c.cores : c.workers;
	t->opened = true;
	pthread_mutex_unlock(&t->lock);
	t->c.changed(t->c.ctx);
	return 0;
}

void *task_run(void *arg)
{
	struct task *t = arg;
	struct err err = { 0 };
	int r = prepare(t, &err);

	while (r == 0 && wait_for_work(t))
		r = go_on(t, &err);
	pthread_mutex_lock(&t->lock);
	if (r < 0 && !t->stopping) {
		err_set(&err, r, "%s", strerror(-r));
		t->failed = true;
		t->err = err;
	}
	t->over = true;
	pthread_mutex_unlock(&t->lock);
	t->c.changed(t->c.ctx);
	return NULL;
}
