/* SPDX-License-Identifier: MIT */
#include "service/worker/task.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/thread.h"
#include "common/util.h"

struct task {
	struct task_config c;
	char *definition;
	pthread_t thread;
	/* the thread's */
	struct stages stages;
	uint64_t pass;	  /* of an order of its own */
	uint64_t added;	  /* splits taken from `split` */
	uint64_t current; /* the epoch of its pipeline */
	uint64_t n_in;	  /* batches in the pipeline */
	uint64_t *clock;  /* of each owner, at its last batch */
	uint32_t n_clocks;
	bool by_owner; /* batches have clocks of their owner alone */

	pthread_mutex_t lock; /* guards all below */
	pthread_cond_t work;
	bool stopping, over, begun, opened;
	struct err err; /* why it failed */
	bool failed, told;
	struct pipeline *pipeline; /* replaced by the thread only */
	uint32_t windows;	   /* of a pipeline */
	uint64_t epoch, samples;
	uint64_t turn; /* counts epochs; the thread's pipeline is of `now` */
	uint64_t now;
	/* of the epoch */
	struct splits splits; /* ASSIGNED: was given */
	uint32_t *split;      /* n_given, in their order */
	uint32_t n_given, n_asked;
	uint64_t n_planned; /* batches of the splits that were given */
	bool none;
	uint64_t starved_ns;
	struct task_batch *batch; /* windows; by number modulo windows */
	uint64_t n_acked, n_made; /* batches [n_acked, n_made) are kept */
	uint64_t spent_ns;	  /* by all threads or cores, in this epoch */
	uint32_t n_parallel;	  /* of these */
};

/* --- the thread ----------------------------------------------------------- */

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

	pthread_mutex_lock(&t->lock);
	taken = is_current(t) && t->added < t->n_given;
	if (taken) {
		uint32_t split = t->split[t->added++];

		*ret = (struct range){ splits_first(&t->splits, split),
				       splits_samples(&t->splits, split) };
	}
	pthread_mutex_unlock(&t->lock);
	return taken;
}

/* Start the stages on `n` samples, in batches. */
static void add(struct task *t, uint64_t first, uint64_t n)
{
	t->n_in += (n + t->c.batch - 1) / t->c.batch;
	pipeline_add(t->pipeline, t->current, t->stages.schedule.order + first,
		     n);
}

/* Not more than the windows: the rest waits here. */
static void add_splits(struct task *t)
{
	struct range range;

	while (t->n_in < t->windows && take_split(t, &range))
		add(t, range.first, range.n);
}

/* Time that was spent since the batch before, of the clocks that only run while
 * there is work. */
static uint64_t spent(struct task *t, const struct delivery *d)
{
	uint64_t *clock = &t->clock[t->by_owner ? d->owner : 0];
	uint64_t before = *clock;

	*clock = d->read_ns + d->prep_ns;
	return *clock - before;
}

/* Keep a batch; the loop sends it. */
static void keep(struct task *t, const struct delivery *d)
{
	uint64_t at = (uint64_t)(pipeline_order(d) - t->stages.schedule.order);
	uint64_t position = at / t->c.batch, cost = spent(t, d);
	struct task_batch *b;

	pthread_mutex_lock(&t->lock);
	if (is_current(t)) {
		b = &t->batch[t->n_made++ % t->windows];
		*b = (struct task_batch){ .d = *d,
					  .starved_ns = t->starved_ns };
		t->starved_ns = 0;
		t->spent_ns += cost;
		if (t->c.mode != SPLIT_OFF) {
			b->split = (uint32_t)(position / t->c.per_split);
			b->position = position;
		}
	}
	pthread_mutex_unlock(&t->lock);
	t->c.changed(t->c.ctx);
}

/* Wait for splits, or another epoch; false: the task ends. */
static bool wait_for_work(struct task *t)
{
	uint64_t since = tick_now(t->c.tick);
	bool more, waited = false;

	pthread_mutex_lock(&t->lock);
	while (!has_work(t)) {
		pthread_cond_wait(&t->work, &t->lock);
		waited = true;
	}
	if (waited && is_current(t))
		t->starved_ns += tick_now(t->c.tick) - since;
	more = !t->stopping;
	pthread_mutex_unlock(&t->lock);
	return more;
}

static bool has_turned(struct task *t)
{
	bool turned;

	pthread_mutex_lock(&t->lock);
	turned = !is_current(t);
	pthread_mutex_unlock(&t->lock);
	return turned;
}

static int go_on(struct task *t, struct err *err)
{
	struct delivery d;
	int r;

	if (has_turned(t))
		return begin_epoch(t, err);
	if (t->c.mode != SPLIT_OFF) {
		add_splits(t);
	} else if (pipeline_left(t->pipeline) == 0) {
		stages_own_order(&t->stages, t->current, t->c.worker,
				 t->pass++);
		add(t, 0, t->stages.data.n);
	}
	if (pipeline_left(t->pipeline) == 0)
		return 0;
	r = pipeline_next(t->pipeline, TICK_NEVER, &d, err);
	t->n_in -= r == 0;
	if (r == 0)
		keep(t, &d);
	/* another epoch has begun, or it stops */
	return r == -ECANCELED && has_turned(t) ? 0 : r;
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

static void *run(void *arg)
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

/* --- life ----------------------------------------------------------------- */

int task_new(const struct task_config *c, struct task **ret)
{
	struct task *t = calloc(1, sizeof(*t));
	int r = -ENOMEM;

	if (!t)
		return -ENOMEM;
	t->c = *c;
	t->stages.data.dirfd = -1;
	t->definition = strdup(c->definition);
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->work, NULL);
	if (t->definition)
		r = thread_start(&t->thread, NULL, run, t);
	if (r == 0) {
		*ret = t;
		return 0;
	}
	free(t->definition);
	pthread_cond_destroy(&t->work);
	pthread_mutex_destroy(&t->lock);
	free(t);
	return r;
}

void task_stop(struct task *t)
{
	pthread_mutex_lock(&t->lock);
	t->stopping = true;
	t->n_acked = t->n_made = 0;
	if (t->pipeline)
		pipeline_interrupt(t->pipeline);
	pthread_cond_signal(&t->work);
	pthread_mutex_unlock(&t->lock);
}

bool task_is_over(struct task *t)
{
	bool over;

	pthread_mutex_lock(&t->lock);
	over = t->over;
	pthread_mutex_unlock(&t->lock);
	return over;
}

void task_free(struct task *t)
{
	if (!t)
		return;
	task_stop(t);
	pthread_join(t->thread, NULL);
	pipeline_free(t->pipeline);
	stages_close(&t->stages);
	splits_fini(&t->splits);
	free(t->split);
	free(t->batch);
	free(t->clock);
	free(t->definition);
	pthread_cond_destroy(&t->work);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

uint64_t task_job(const struct task *t)
{
	return t->c.job;
}

/* --- splits --------------------------------------------------------------- */

static void fail(struct task *t, const char *why)
{
	t->failed = t->stopping = true;
	snprintf(t->err.text, sizeof(t->err.text), "%s", why);
	pthread_cond_signal(&t->work);
}

void task_epoch(struct task *t, uint64_t epoch, uint64_t n)
{
	pthread_mutex_lock(&t->lock);
	if (t->begun && t->epoch == epoch) {
		pthread_mutex_unlock(&t->lock);
		return;
	}
	splits_fini(&t->splits);
	free(TAKE_PTR(t->split));
	t->begun = true;
	t->epoch = epoch;
	t->samples = n;
	t->turn++;
	t->n_given = t->n_asked = 0;
	t->n_planned = 0;
	t->none = false;
	t->starved_ns = 0;
	t->n_acked = t->n_made = 0;
	t->spent_ns = 0;
	/* whose they are, the dispatcher knows */
	if (splits_init(&t->splits,
			t->c.mode == SPLIT_OFF ? SPLIT_OFF : SPLIT_DYNAMIC, n,
			t->c.batch, t->c.per_split, NULL, 0) < 0)
		fail(t, "out of memory for the splits of an epoch");
	t->split = calloc(t->splits.n + 1, sizeof(*t->split));
	if (!t->split)
		fail(t, "out of memory for the splits of an epoch");
	if (t->pipeline)
		pipeline_interrupt(t->pipeline);
	pthread_cond_signal(&t->work);
	pthread_mutex_unlock(&t->lock);
}

bool task_in_epoch(const struct task *t, uint64_t epoch)
{
	return t->begun && t->epoch == epoch; /* changed by this thread only */
}

/* Under the lock: batches that were given and are not made. */
static uint64_t n_ahead(const struct task *t)
{
	return t->n_planned - t->n_made;
}

uint32_t task_wants(struct task *t, uint64_t *ret_epoch)
{
	uint32_t n = 0;

	pthread_mutex_lock(&t->lock);
	if (t->begun && t->opened && !t->stopping && !t->over && !t->none &&
	    !t->n_asked && t->c.mode != SPLIT_OFF && n_ahead(t) < t->windows)
		n = (uint32_t)((t->windows - n_ahead(t) + t->c.per_split - 1) /
			       t->c.per_split);
	t->n_asked += n;
	*ret_epoch = t->epoch;
	pthread_mutex_unlock(&t->lock);
	return n;
}

void task_forget(struct task *t)
{
	pthread_mutex_lock(&t->lock);
	t->n_asked = 0;
	pthread_mutex_unlock(&t->lock);
}

/* Under the lock. The last split of an epoch may have fewer batches. */
static void give(struct task *t, uint32_t split)
{
	t->n_asked -= t->n_asked > 0;
	if (splits_assign(&t->splits, split, t->c.worker) < 0)
		return;
	t->split[t->n_given++] = split;
	t->n_planned += (splits_samples(&t->splits, split) + t->c.batch - 1) /
			t->c.batch;
	pthread_cond_signal(&t->work);
}

int task_split(struct task *t, uint64_t epoch, uint32_t split)
{
	int r = 0;

	pthread_mutex_lock(&t->lock);
	if (t->begun && t->epoch == epoch && !t->stopping) {
		if (split < t->splits.n)
			give(t, split);
		else
			r = -EPROTO;
	}
	pthread_mutex_unlock(&t->lock);
	return r;
}

void task_none(struct task *t, uint64_t epoch)
{
	pthread_mutex_lock(&t->lock);
	if (t->begun && t->epoch == epoch)
		t->none = true;
	pthread_mutex_unlock(&t->lock);
}

/* --- batches -------------------------------------------------------------- */

const struct task_batch *task_batch(struct task *t, uint64_t number)
{
	const struct task_batch *b = NULL;

	pthread_mutex_lock(&t->lock);
	if (number >= t->n_acked && number < t->n_made)
		b = &t->batch[number % t->windows];
	pthread_mutex_unlock(&t->lock);
	return b;
}

int task_ack(struct task *t, uint64_t number)
{
	int r = 0;

	pthread_mutex_lock(&t->lock);
	if (number > t->n_made)
		r = -EPROTO;
	while (r == 0 && t->n_acked < number)
		pipeline_release(t->pipeline,
				 &t->batch[t->n_acked++ % t->windows].d);
	pthread_mutex_unlock(&t->lock);
	return r;
}

uint64_t task_acked(const struct task *t)
{
	return t->n_acked; /* changed by this thread only */
}

bool task_is_empty(struct task *t, uint64_t number)
{
	bool empty;

	pthread_mutex_lock(&t->lock);
	empty = t->stopping || t->over ||
		(t->none && n_ahead(t) == 0 && number >= t->n_made);
	pthread_mutex_unlock(&t->lock);
	return empty;
}

bool task_is_idle(struct task *t)
{
	bool idle;

	pthread_mutex_lock(&t->lock);
	idle = t->c.mode == SPLIT_OFF || t->stopping || t->over ||
	       ((t->none || !t->n_asked) && n_ahead(t) == 0 &&
		t->n_acked == t->n_made);
	pthread_mutex_unlock(&t->lock);
	return idle;
}

uint64_t task_cost(struct task *t)
{
	uint64_t cost = 0;

	pthread_mutex_lock(&t->lock);
	if (t->n_made && t->n_parallel)
		cost = t->spent_ns / t->n_made / t->n_parallel;
	pthread_mutex_unlock(&t->lock);
	return cost;
}

char *task_failure(struct task *t)
{
	char *text = NULL;

	pthread_mutex_lock(&t->lock);
	if (t->failed && !t->told)
		text = strdup(t->err.text);
	t->told = t->told || text;
	pthread_mutex_unlock(&t->lock);
	return text;
}
