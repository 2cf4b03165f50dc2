/* SPDX-License-Identifier: MIT */
#include "loader/pipeline/pipeline.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "common/util.h"
#include "loader/pipeline/pin.h"
#include "loader/pipeline/staged.h"

/* Alignment of transformed samples in the batch. Source: prep.h */
enum { ALIGN = 64, LEASE = 8 };

struct pipeline {
	struct pipeline_config c;
	struct flow *flow;
	struct staged *staged; /* NULL: no other jobs */
	struct supply from;    /* one of these two */
	struct workers *workers;
	struct pin *pin;
	struct pinned_pool *pinned; /* of the windows; NULL: plain memory */
	bool virtual;		    /* virtual cores transform, see worker.h */
	/* per worker: the time spent when the GPU fell idle, at since_ns;
	 * if the clocks were not read then, when its last batch was complete */
	struct activity *since;
	uint64_t since_ns; /* TICK_NEVER: clocks not read */
	uint64_t n_left;   /* samples of the epoch not yet consumed */
	atomic_bool interrupted;
	atomic_uint users; /* of the memory: the owner, lent batches */
	atomic_uint n_loans;
};

struct loan {
	struct pipeline *pipeline;
	struct delivery delivery;
	atomic_uint users; /* the borrower, and the consumer's batch */
};

static bool has_workers(const struct pipeline *p)
{
	return p->c.engine->next;
}

bool pipeline_gathers(const struct pipeline_config *c)
{
	return c->batching && c->batching->add;
}

bool pipeline_any_order(const struct pipeline_config *c)
{
	return c->engine->any_order || (c->batching && c->batching->any_order);
}

int pipeline_sample_bytes(const struct pipeline_config *c, size_t *ret,
			  struct err *err)
{
	const struct prep_ops *prep = c->prep;
	_cleanup_free_ void *state = calloc(1, prep->plugin.state_size + 1);
	int r = 0;

	*ret = 0;
	if (!prep->sample_bytes)
		return 0;
	if (!state)
		return err_set(err, -ENOMEM, "out of memory");
	if (prep->init)
		r = prep->init(state, c->prep_config, err);
	if (r == 0)
		*ret = prep->sample_bytes(state);
	if (prep->fini)
		prep->fini(state);
	return r;
}

/*
 * Enough windows for the batches to prefetch, plus one whose batches the
 * consumer takes; at least two, so that one is read while the other is
 * consumed.
 */
uint32_t pipeline_windows(const struct pipeline_config *c)
{
	uint64_t ahead = (uint64_t)c->prefetch * MAX(c->workers, c->cores);
	uint64_t n = (ahead + c->superbatch - 1) / c->superbatch + 1;

	/* without pinned memory GPUs hold the batches that they copy */
	if (c->gpus > 1)
		n += (c->gpus - 1 + c->superbatch - 1) / c->superbatch;
	return (uint32_t)MAX(n, 2);
}

int pipeline_shape(const struct pipeline_config *c, struct windows_config *ret)
{
	uint32_t n = pipeline_windows(c);
	uint64_t samples = (uint64_t)n * c->superbatch * c->batch;

	*ret = (struct windows_config){ .batch = c->batch,
					.superbatch = c->superbatch,
					.n = n,
					.any_order = pipeline_any_order(c) };
	if (!pipeline_gathers(c))
		return 0;
	if (samples > INT32_MAX)
		return -ENOMEM;
	ret->n = (uint32_t)samples;
	ret->batch = ret->superbatch = 1;
	ret->singles = (struct singles_config){ .batching = c->batching,
						.options = c->batching_options,
						.batch = c->batch };
	return 0;
}

/* Small enough that all workers have a share of a batch, and 1 where a sample
 * keeps a worker busy for long; otherwise leasing costs more than a read. */
uint32_t pipeline_lease(const struct pipeline_config *c, size_t stride)
{
	uint32_t n = c->batch / (c->workers * 4);

	return stride ? 1 : MAX(MIN(n, LEASE), 1);
}

/* Memory of a window with samples of the mean size. */
static size_t window_bytes(const struct flow_config *f, size_t mean)
{
	size_t sample = f->raw ? buffer_room(mean, f->direct) : f->stride;

	return sample * f->windows.batch * f->windows.superbatch;
}

static int start_staged(struct pipeline *p, const struct worker_config *w,
			struct err *err)
{
	const struct pipeline_config *c = &p->c;
	struct staged_config s = { .area = c->staging,
				   .flow = p->flow,
				   .tick = c->tick,
				   .data = c->data,
				   .batch = c->batch,
				   .per_epoch = c->per_epoch,
				   .most = pipeline_windows(c),
				   .workers = c->workers,
				   .virtual = p->virtual,
				   .sample_bytes = w->sample_bytes };

	int r = c->staging ? staged_new(&s, &p->staged, err) : 0;

	p->from = p->staged ? (struct supply){ &supply_staged, p->staged }
			    : (struct supply){ &supply_flow, p->flow };
	return r;
}

static int start_pin(struct pipeline *p, size_t bytes, struct err *err)
{
	const struct pipeline_config *c = &p->c;

	if (!c->pin || c->pin_direct)
		return 0;
	return pin_new(p->from, p->flow, c->tick, c->pin, c->batch, bytes,
		       c->pin_budget, MAX(c->gpus, 1), c->pin_inline, &p->pin,
		       err);
}

static int start_stages(struct pipeline *p, struct err *err)
{
	const struct pipeline_config *c = &p->c;
	struct flow_config f = { .data = c->data,
				 .tick = c->tick,
				 .direct = c->direct,
				 .whole_batches = c->engine->whole_batches,
				 .address = c->address };
	struct worker_config w = { .engine = c->engine,
				   .engine_options = c->engine_options,
				   .prep = c->prep,
				   .data = c->data,
				   .tick = c->tick,
				   .trace = c->trace,
				   .seed = c->seed,
				   .direct = c->direct,
				   .mount_dev = c->mount_dev,
				   .depth = MAX(c->queue_depth / c->workers,
						1) };
	size_t mean, bytes;
	int r = pipeline_sample_bytes(c, &bytes, err);

	if (r == 0 && pipeline_shape(c, &f.windows) < 0)
		r = err_set(err, -ENOMEM,
			    "out of memory for the samples in flight: use a "
			    "smaller --batch or --prefetch");
	if (r < 0)
		return r;
	f.raw = bytes == 0;
	if (!c->prep->cost)
		f.stride = (bytes + ALIGN - 1) / ALIGN * ALIGN;
	w.sample_bytes = bytes;
	w.stride = f.stride;
	w.lease = pipeline_lease(c, f.stride);
	mean = bytes ? bytes : c->data->bytes / c->data->n;
	if (c->pin_direct)
		r = pinned_new(f.windows.n, window_bytes(&f, mean),
			       c->pin_budget, &p->pinned, err);
	if (r < 0)
		return r;
	f.pinned = p->pinned;
	p->since = calloc(c->workers, sizeof(*p->since));
	if (!p->since)
		return err_set(err, -ENOMEM, "out of memory");
	p->virtual = workers_virtual(&w);
	r = flow_new(&f, &p->flow, err);
	if (r == 0)
		r = start_staged(p, &w, err);
	if (r == 0)
		r = start_pin(p, mean * c->batch, err);
	w.prep_config = c->prep_config;
	w.cores = c->cores;
	w.flow = p->flow;
	if (r == 0)
		r = workers_new(&w, c->workers, &p->workers, err);
	return r;
}

int pipeline_new(const struct pipeline_config *c, struct pipeline **ret,
		 struct err *err)
{
	struct pipeline *p = calloc(1, sizeof(*p));
	int r = 0;

	if (!p)
		return err_set(err, -ENOMEM, "out of memory");
	p->c = *c;
	p->since_ns = TICK_NEVER;
	atomic_init(&p->users, 1);
	if (has_workers(p))
		r = start_stages(p, err);
	if (r < 0) {
		pipeline_free(p);
		return r;
	}
	*ret = p;
	return 0;
}

void pipeline_interrupt(struct pipeline *p)
{
	atomic_store(&p->interrupted, true);
	if (p->flow)
		flow_stop(p->flow, 0, NULL);
	if (p->pin)
		pin_stop(p->pin);
}

void pipeline_join(struct pipeline *p)
{
	if (p->pin)
		pin_join(p->pin);
	if (p->workers)
		workers_join(p->workers);
}

/* One user less. The last one frees the memory; no thread is left. */
static void leave(struct pipeline *p)
{
	if (atomic_fetch_sub(&p->users, 1) > 1)
		return;
	pin_free(p->pin);
	flow_free(p->flow);
	pinned_free(p->pinned);
	free(p->since);
	free(p);
}

void pipeline_free(struct pipeline *p)
{
	if (!p)
		return;
	pipeline_interrupt(p);
	pipeline_join(p);
	staged_free(p->staged);
	workers_free(p->workers);
	leave(p);
}

int pipeline_set_cores(struct pipeline *p, uint32_t n)
{
	return p->workers ? workers_set_cores(p->workers, n) : -ENOTSUP;
}

void pipeline_begin(struct pipeline *p, uint64_t epoch, const uint32_t *order,
		    uint64_t n)
{
	p->n_left = n;
	if (has_workers(p))
		p->from.ops->begin(p->from.state, epoch, order, n);
}

void pipeline_add(struct pipeline *p, uint64_t epoch, const uint32_t *order,
		  uint64_t n)
{
	p->n_left += n;
	flow_begin(p->flow, epoch, order, n);
}

const uint32_t *pipeline_order(const struct delivery *d)
{
	return d->batch->window->order;
}

/* Wait once, for the pin stage's batch or, without it, the workers'. */
static int wait_for(struct pipeline *p, uint64_t deadline, struct delivery *ret)
{
	struct batch *b;
	int r;

	if (p->pin)
		return pin_next(p->pin, deadline, ret);
	r = p->from.ops->next(p->from.state, deadline, &b);
	if (r == 0) {
		*ret = delivery_of(b);
		ret->batch = b;
	}
	return r;
}

/* Of the workers that made the batch. */
static double read_share(const struct pipeline *p, const struct delivery *d)
{
	struct activity since = { 0 };

	for (uint32_t i = 0; i < p->c.workers; i++) {
		if (p->c.engine->whole_batches && i != d->owner)
			continue;
		since.read_ns += p->since[i].read_ns;
		since.prep_ns += p->since[i].prep_ns;
	}
	return activity_read_share(&since, &d->spent, p->virtual);
}

/* Read the workers' clocks: the GPU fell idle before its batch was there. */
static void look(struct pipeline *p, uint64_t idle)
{
	if (p->since_ns == idle) /* done for another GPU's batch of this step */
		return;
	p->since_ns = idle;
	for (uint32_t i = 0; i < p->c.workers; i++)
		p->since[i] = workers_activity(p->workers, i);
}

/* Keep a batch's clocks as the start for a next batch that completes before the
 * clocks are read. */
static void remember(struct pipeline *p, const struct delivery *d)
{
	if (!p->c.engine->whole_batches)
		memset(p->since, 0, p->c.workers * sizeof(*p->since));
	p->since[p->c.engine->whole_batches ? d->owner : 0] = d->spent;
}

/* Set read_share, by the clocks of the workers that made the batch. */
static void account(struct pipeline *p, uint64_t idle, struct delivery *d)
{
	d->read_share = read_share(p, d);
	if (p->since_ns != idle)
		remember(p, d);
}

static uint32_t n_complete(const struct pipeline *p)
{
	return p->from.ops->n_complete(p->from.state);
}

int pipeline_next_until(struct pipeline *p, uint64_t idle, uint64_t until,
			struct delivery *ret, struct err *err)
{
	uint32_t queued;
	int r;

	if (p->n_left == 0)
		return -ENODATA;
	if (atomic_load(&p->interrupted))
		return -ECANCELED;
	if (!has_workers(p)) {
		*ret = (struct delivery){
			.n = (uint32_t)MIN(p->c.batch, p->n_left),
			.ready_ns = tick_now(p->c.tick),
			.read_share = 1,
		};
		ret->complete_ns = ret->ready_ns;
		ret->batch_bytes = ret->n * p->c.sample_bytes;
		p->n_left -= ret->n;
		return 0;
	}
	queued = n_complete(p) + (p->pin ? pin_n_ready(p->pin) : 0);
	r = wait_for(p, MIN(idle, until), ret);
	if (r == -ETIMEDOUT && idle < until) {
		if (!p->from.ops->shared)
			look(p, idle);
		r = wait_for(p, until, ret);
	}
	if (r == -ETIMEDOUT)
		return 1;
	if (r < 0) {
		int why = flow_error(p->flow, err);

		return why < 0 ? why : r;
	}
	if (!p->from.ops->shared)
		account(p, idle, ret);
	delivery_count(ret, p->c.data);
	ret->queued = queued;
	p->n_left -= ret->n;
	return 0;
}

bool pipeline_ready(struct pipeline *p)
{
	if (p->n_left == 0 || atomic_load(&p->interrupted))
		return true;
	if (!has_workers(p))
		return true;
	return (p->pin && !p->c.pin_inline ? pin_n_ready(p->pin)
					   : n_complete(p)) > 0;
}

uint64_t pipeline_left(const struct pipeline *p)
{
	return p->n_left;
}

static void release(struct pipeline *p, struct delivery *d)
{
	if (d->pinned)
		pin_release(p->pin, d);
	else if (d->batch)
		p->from.ops->release(p->from.state, d->batch);
}

/* One user of the batch's memory less. */
static void put_loan(struct loan *l)
{
	if (atomic_fetch_sub(&l->users, 1) > 1)
		return;
	release(l->pipeline, &l->delivery);
	leave(l->pipeline);
	free(l);
}

void pipeline_release(struct pipeline *p, struct delivery *d)
{
	if (d->loan)
		put_loan(d->loan);
	else
		release(p, d);
}

int pipeline_lend(struct pipeline *p, struct delivery *d, struct loan **ret)
{
	struct loan *l;

	if (!d->place || p->from.ops->shared || p->c.prep->cost)
		return -ENOBUFS;
	l = malloc(sizeof(*l));
	if (!l)
		return -ENOMEM;
	*l = (struct loan){ .pipeline = p, .delivery = *d };
	atomic_init(&l->users, 2);
	atomic_fetch_add(&p->users, 1);
	atomic_fetch_add(&p->n_loans, 1);
	*ret = d->loan = l;
	return 0;
}

uint32_t pipeline_loans(const struct pipeline *p)
{
	return atomic_load(&p->n_loans);
}

void loan_end(struct loan *l)
{
	struct pipeline *p = l ? l->pipeline : NULL;

	if (!p)
		return;
	atomic_fetch_add(&p->users, 1);
	put_loan(l);
	/* only now: by this number another batch may be taken */
	atomic_fetch_sub(&p->n_loans, 1);
	leave(p);
}

void pipeline_work(struct pipeline *p, struct work *ret)
{
	if (p->workers)
		workers_work(p->workers, ret);
}

uint64_t pipeline_pinned(struct pipeline *p)
{
	if (p->pinned)
		return pinned_most_bytes(p->pinned);
	return p->pin ? pin_most_bytes(p->pin) : 0;
}
