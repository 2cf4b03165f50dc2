/* SPDX-License-Identifier: MIT */
/*
 * The pin stage, the training loop and the GPUs of a node, as in
 * loader/pipeline/pin.c, loader/train/train.c and emu/gpu/device_local.c. The
 * training loop is free from `free_ns` on; it takes the next batch when there
 * is one. A step that other nodes take part in stays open until all have
 * computed theirs; the batch that comes next is held as long.
 */
#include "loader/sim/sim_node.h"

#include <errno.h>
#include <stdlib.h>

#include "common/util.h"
#include "loader/sim/sim_load.h"

static const struct device_job *job(const struct sim_node *n)
{
	return n->sim->c.job;
}

/* --- life ----------------------------------------------------------------- */

int sim_step_init(struct sim_node *n)
{
	struct sim_train *t = &n->train;

	t->pins.lanes = n->sim->lanes;
	t->buffers = pins_buffers(&t->pins);
	t->ring = calloc(t->buffers, sizeof(*t->ring));
	observers_add(&n->observers, &observe_account, &n->observed);
	return t->ring ? 0 : -ENOMEM;
}

void sim_step_fini(struct sim_node *n)
{
	free(n->train.ring);
}

void sim_step_begin(struct sim_node *n, uint64_t samples, uint64_t now)
{
	struct device_job own = *job(n);
	struct sim_train *t = &n->train;

	own.node = n->node;
	gpus_init(&t->gpus, own.gpus, now);
	for (uint32_t i = 0; i < own.gpus->n; i++)
		t->rng[i] = device_rng(&own, n->sim->epoch, i);
	t->idle_ns = t->free_ns = now;
	t->n_left = samples;
	t->n_steps = 0;
	t->ended = false;
}

/* Look again at `at`. */
static void look_at(struct sim_node *n, uint64_t at, uint64_t now)
{
	if (n->look_ns > now && n->look_ns <= at)
		return; /* the earlier one looks for what remains */
	n->look_ns = at;
	sim_at(n, at, SIM_LOOK, 0);
}

/* --- batches -------------------------------------------------------------- */

static double read_share(struct sim_node *n, const struct batch *b)
{
	const struct pipeline_config *c = n->sim->c.pipeline;
	struct activity *since =
		&n->load.since[c->engine->whole_batches ? b->owner : 0];
	double share =
		activity_read_share(since, &b->spent, n->load.cores != NULL);

	*since = b->spent;
	return share;
}

static struct delivery delivery(struct sim_node *n, const struct batch *b)
{
	size_t sample = n->sim->sample_bytes;

	return (struct delivery){
		.n = b->n,
		.bytes = b->bytes,
		.batch_bytes = sample ? b->n * sample : b->bytes,
		.complete_ns = b->complete_ns,
		.ready_ns = b->complete_ns,
		.owner = sim_load_index(n, b), /* for its release */
		.read_share = read_share(n, b),
	};
}

/* One batch through the pin stage; false: not now. */
static bool pin_one(struct sim_node *n, uint64_t now)
{
	struct sim_train *t = &n->train;
	struct pins *all = &t->pins;
	struct sim_pinned *p = &t->ring[all->n_in % pins_buffers(all)];
	uint64_t lane = *pins_lane(all);
	struct batch *b;

	if (!t->buffers)
		return false;
	if (lane > now) {
		look_at(n, lane, now);
		return false;
	}
	b = windows_next(&n->load.windows);
	if (!b)
		return false;
	t->buffers--;
	p->d = delivery(n, b);
	p->d.pin_ns = gpu_copy_ns(job(n)->gpu, NULL, GPU_COPY_TO_PINNED,
				  p->d.batch_bytes);
	p->d.ready_ns = pins_copy(all, now, p->d.pin_ns, now, &p->seen_ns);
	all->n_in++;
	sim_load_release(n, p->d.owner, now);
	return true;
}

static bool next_pinned(struct sim_node *n, struct delivery *ret, uint64_t now)
{
	struct sim_train *t = &n->train;
	struct pins *all = &t->pins;
	struct sim_pinned *p = &t->ring[all->n_out % pins_buffers(all)];

	if (all->n_out == all->n_in)
		return false;
	if (p->seen_ns > now) {
		look_at(n, p->seen_ns, now);
		return false;
	}
	all->n_out++;
	*ret = p->d;
	return true;
}

/* As pipeline_next; false: there is none now. */
static bool next_batch(struct sim_node *n, struct delivery *ret, uint64_t now)
{
	const struct pipeline_config *c = n->sim->c.pipeline;
	struct sim_train *t = &n->train;
	uint32_t queued = windows_n_complete(&n->load.windows) +
			  (uint32_t)(t->pins.n_in - t->pins.n_out);
	struct batch *b;

	if (!c->engine->next) {
		*ret = (struct delivery){
			.n = (uint32_t)MIN(c->batch, t->n_left),
			.complete_ns = now,
			.ready_ns = now,
			.read_share = 1,
		};
		ret->batch_bytes = ret->n * c->sample_bytes;
		return true;
	}
	if (n->sim->pinned) {
		if (!next_pinned(n, ret, now))
			return false;
	} else {
		b = windows_next(&n->load.windows);
		if (!b)
			return false;
		*ret = delivery(n, b);
	}
	ret->queued = queued;
	return true;
}

void sim_step_release(struct sim_node *n, uint32_t what, uint64_t now)
{
	if (what == SIM_PINNED)
		n->train.buffers++;
	else
		sim_load_release(n, what, now);
}

static void release_at(struct sim_node *n, const struct delivery *d,
		       uint64_t at)
{
	if (n->sim->c.pipeline->engine->next)
		sim_at(n, at, SIM_RELEASE,
		       n->sim->pinned ? SIM_PINNED : d->owner);
}

/* Is a checkpoint due after the steps that were submitted? */
static bool is_due(const struct sim_node *n)
{
	uint64_t every = n->sim->c.save.every;

	return every && n->train.n_submitted % every == 0;
}

/* --- a step --------------------------------------------------------------- */

static void copy(struct sim_node *n, uint32_t gpu, uint32_t batch,
		 uint64_t bytes, uint64_t now)
{
	const struct device_job *j = job(n);
	struct sim_train *t = &n->train;
	struct sim_flight *f = &t->flight;
	struct gpus_part part =
		gpus_copy_of(j->gpu, j->model, bytes, j->pinned);

	gpus_copy(&t->gpus, gpu, f->batch[batch].ready_ns, &part,
		  &t->step[gpu]);
	f->copy_end[gpu] = MAX(now, t->step[gpu].copy_end);
}

/* Each GPU's part; copies a shared batch to the GPUs. Returns the number of
 * GPUs that have one. */
static uint32_t share_out(struct sim_node *n, struct gpus_part *cost,
			  uint64_t now)
{
	struct sim_train *t = &n->train;
	struct sim_flight *f = &t->flight;
	uint32_t gpus = t->gpus.config.n, used = 0;

	for (uint32_t i = 0; i < gpus; i++) {
		uint32_t samples = f->even    ? gpus_cut(f->samples, gpus, i)
				   : i < f->n ? f->batch[i].n
					      : 0;
		uint64_t bytes = f->bytes * samples / f->samples;

		if (f->even && samples && !device_cuts(job(n)->gpus))
			copy(n, i, f->n - 1, bytes, now);
		cost[i] = device_part_of(job(n), samples, bytes);
		device_vary(job(n), &t->rng[i], &cost[i]);
		used += samples > 0;
	}
	return used;
}

static struct step_done done_of(const struct sim_node *n)
{
	const struct sim_train *t = &n->train;

	return (struct step_done){ .epoch = n->sim->epoch,
				   .step = t->n_steps,
				   .idle_ns = t->flight.idle_ns,
				   .n_gpus = t->gpus.config.n,
				   .n_batches = t->flight.n,
				   .even = t->flight.even,
				   .batch = t->flight.batch,
				   .gpu = t->step };
}

/* The step's times are known, up to `end`. */
static void report(struct sim_node *n, uint64_t end, const struct stalls *other)
{
	struct sim_train *t = &n->train;
	struct step_done all = done_of(n);

	all.other = other;
	t->idle_ns = end;
	observers_done(&n->observers, &all);
	t->n_steps++;
	t->flight.n = t->flight.samples = 0;
	t->flight.bytes = 0;
	t->flight.open = false;
}

static void end_epoch(struct sim_node *n)
{
	struct sim_train *t = &n->train;

	if (t->ended || t->n_left || t->flight.n || t->holding || t->saving)
		return;
	t->ended = true;
	t->end_ns = MAX(t->free_ns, t->idle_ns);
	n->sim->end_ns = MAX(n->sim->end_ns, t->end_ns);
	n->sim->n_ended++;
}

/* The node's part in a step with others. */
static void reach(struct sim_node *n, const struct gpus_reach *r)
{
	struct sync *s = n->sim->c.sync;
	struct step_done all = done_of(n);
	uint32_t last = observers_slowest(&all);
	struct stalls data = account_stalls(all.idle_ns, step_batch(&all, last),
					    &all.gpu[last]);

	n->train.flight.open = true;
	s->node[n->node] = sync_record(s->base_ns, all.idle_ns, r, &data,
				       all.gpu[last].transfer_stall_ns);
	n->sim->n_reached++;
}

/* When the training loop goes on: it gives the batches back, sees the step
 * begin, and waits for room. */
static void go_on(struct sim_node *n, uint64_t now)
{
	struct sim_train *t = &n->train;
	uint64_t begin = 0;

	t->free_ns = now;
	for (uint32_t i = 0; i < t->flight.n; i++)
		t->free_ns = MAX(t->free_ns, t->flight.copy_end[i]);
	for (uint32_t i = 0; i < t->gpus.config.n; i++)
		begin = MAX(begin, t->step[i].compute_start);
	t->free_ns = MAX(t->free_ns, begin);
	observers_begun(&n->observers, t->free_ns);
}

/* The next step begins at `until` or later. */
static void hold(struct sim_node *n, uint64_t until)
{
	struct sim_train *t = &n->train;

	if (until <= t->idle_ns)
		return;
	if (until == UINT64_MAX) {
		n->sim->failed = -ETIMEDOUT;
		return;
	}
	gpus_hold(&t->gpus, until);
	t->idle_ns = until;
	t->free_ns = MAX(t->free_ns, until);
}

/* The checkpoint that is due after the step, if any. */
static void save(struct sim_node *n)
{
	if (n->train.saving)
		sim_at(n, n->train.idle_ns, SIM_SAVE, SIM_STEP_OVER);
}

static void step(struct sim_node *n, uint64_t now)
{
	struct sim_train *t = &n->train;
	struct sim_flight *f = &t->flight;
	struct gpus_part cost[GPUS_MAX];
	struct gpus_reach r;

	f->used = share_out(n, cost, now);
	f->idle_ns = t->idle_ns;
	for (uint32_t i = 0; f->even && i < f->n; i++)
		release_at(n, &f->batch[i], f->copy_end[i]);
	device_warm_up(job(n), t->n_submitted, cost);
	t->gpus.accumulates =
		device_accumulates(job(n), t->n_submitted++, cost);
	t->saving = is_due(n);
	if (n->sim->c.sync) {
		n->sim->c.sync->accumulates = t->gpus.accumulates;
		gpus_compute(&t->gpus, f->used, cost, t->step, &r);
		reach(n, &r);
		go_on(n, now);
		/* there is room for the next copy when the step has ended */
		t->blocked = t->gpus.config.transfer == GPU_TRANSFER_BLOCKING;
		return;
	}
	t->idle_ns = gpus_step(&t->gpus, f->used, cost, t->step);
	go_on(n, now);
	report(n, t->idle_ns, NULL);
	hold(n, sim_fail_until(&n->sim->fail, t->idle_ns));
	t->free_ns = MAX(t->free_ns, gpu_room(&t->gpus.gpu[0]));
	save(n);
}

/* As train_step. */
static void use(struct sim_node *n, const struct delivery *d, uint64_t now)
{
	struct sim_train *t = &n->train;
	struct sim_flight *f = &t->flight;
	bool cut = device_cuts(job(n)->gpus);
	uint32_t gpus = t->gpus.config.n, i = f->n++;

	if (i == 0)
		f->even = gpus > 1 &&
			  (cut ||
			   d->n + t->n_left < (uint64_t)job(n)->batch * gpus);
	f->batch[i] = *d;
	f->samples += d->n;
	f->bytes += d->batch_bytes;
	f->copy_end[i] = now;
	t->free_ns = now;
	if (!f->even || cut)
		copy(n, i, i, d->batch_bytes, now);
	if (!f->even)
		release_at(n, d, f->copy_end[i]);
	if (i + 1 == (cut ? 1 : gpus) || !t->n_left)
		step(n, now);
}

/* The training loop's next batch; false: not now. */
static bool consume_one(struct sim_node *n, uint64_t now)
{
	struct sim_train *t = &n->train;
	struct delivery d;

	if (!t->n_left || t->holding || t->blocked || t->saving)
		return false;
	if (t->free_ns > now) {
		look_at(n, t->free_ns, now);
		return false;
	}
	if (!next_batch(n, &d, now))
		return false;
	t->n_left -= d.n;
	if (!t->flight.open) {
		use(n, &d, now);
		return true;
	}
	t->held = d;
	t->holding = true;
	return true;
}

void sim_step_look(struct sim_node *n, uint64_t now)
{
	bool more = true;

	if (n->look_ns <= now)
		n->look_ns = 0;
	while (more) {
		more = n->sim->pinned && pin_one(n, now);
		more |= consume_one(n, now);
	}
	end_epoch(n);
}

/* --- all nodes ------------------------------------------------------------ */

static void settle_one(struct sim_node *n, const struct gpus_reach *all,
		       uint64_t reduced, uint64_t now)
{
	const struct sync *s = n->sim->c.sync;
	struct sim_train *t = &n->train;
	uint64_t end =
		gpus_reduced(&t->gpus, t->flight.used, all, reduced, t->step);

	report(n, end, s->last == n->node ? NULL : &s->node[s->last].data);
	t->free_ns = MAX(t->free_ns, gpu_room(&t->gpus.gpu[0]));
	if (t->blocked)
		t->free_ns = MAX(t->free_ns, now);
	t->blocked = false;
}

/* A failure delays all nodes; their steps have ended. */
static void fail_all(struct train_sim *s)
{
	uint64_t end = 0, until;

	for (uint32_t i = 0; i < s->c.nodes; i++)
		end = MAX(end, s->nodes[i].train.idle_ns);
	until = sim_fail_until(&s->fail, end);
	for (uint32_t i = 0; until > end && i < s->c.nodes; i++)
		hold(&s->nodes[i], until);
}

static void resume(struct sim_node *n, uint64_t now)
{
	struct sim_train *t = &n->train;

	if (t->holding && !t->saving) {
		t->holding = false;
		use(n, &t->held, now);
	}
	sim_step_look(n, now);
}

void sim_step_go_on(struct sim_node *n, uint64_t now)
{
	struct sim_train *t = &n->train;

	t->saving = false;
	hold(n, now);
	t->free_ns = MAX(t->free_ns, now);
	resume(n, now);
}

void sim_step_settle(struct train_sim *s, const struct gpus_reach *all,
		     uint64_t reduced, uint64_t now)
{
	for (uint32_t i = 0; i < s->c.nodes; i++)
		settle_one(&s->nodes[i], all, reduced, now);
	fail_all(s);
	/* the next step overwrites the records of this one */
	for (uint32_t i = 0; i < s->c.nodes; i++) {
		save(&s->nodes[i]);
		resume(&s->nodes[i], now);
	}
}
