/* SPDX-License-Identifier: MIT */
#include "loader/train/train.h"

#include <errno.h>
#include <string.h>

#include "common/units.h"
#include "common/util.h"
#include "loader/train/stage.h"
#include "loader/train/train_account.h"
#include "loader/train/train_remote.h"

/* Of the ceiling's run. arbitrary: enough steps to average over, short enough
 * not to be noticed before a training run */
enum { CEILING_STEPS = 20 };
#define CEILING_WALL_NS (NS_PER_S / 2)

extern const struct engine_ops engine_null;
extern const struct prep_ops prep_none;

/* What `n` samples of `bytes` take of a GPU, without what varies. */
static struct gpus_part part_of(const struct train *t, uint32_t n,
				uint64_t bytes)
{
	struct gpus_part p =
		gpus_part_of(t->gpu, t->model, n, bytes, t->pinned);

	if (t->prep_gpu && n)
		p.prep_ns = prep_profile_gpu_ns(t->prep_gpu, n);
	if (t->inference)
		p.backward_ns = p.optimizer_ns = 0;
	return p;
}

static void vary(struct train *t, uint32_t i, struct gpus_part *p)
{
	double x = gpu_jitter(&t->now.rng[i], t->jitter);

	p->forward_ns = (uint64_t)((double)p->forward_ns * x);
	p->backward_ns = (uint64_t)((double)p->backward_ns * x);
	p->optimizer_ns = (uint64_t)((double)p->optimizer_ns * x);
}

/* One batch for all GPUs. */
static bool is_cut(const struct train *t)
{
	return t->gpus->parallel == GPUS_DP && t->gpus->n > 1;
}

/* The oldest batch that is held: once it is copied, its memory is free. */
static void give_back(struct train *t)
{
	struct train_now *now = &t->now;
	uint32_t i = now->given++;

	tick_wait(t->tick, now->step[i].copy_end);
	pipeline_release(t->pipeline, &now->batch[i]);
}

/* To its GPU, or where the batch is for several, to the first: `n` samples of
 * a batch of the step on its way. */
static void copy(struct train *t, uint32_t gpu, const struct delivery *d,
		 uint32_t n, uint64_t bytes)
{
	struct gpus *g = &t->now.gpus;
	struct gpus_part part = part_of(t, n, bytes);
	struct delivery own = *d;

	own.n = MIN(n, d->n);
	/* the bytes of those that were given back are gone */
	if (!t->pinned && d->place && d >= &t->now.batch[t->now.given]) {
		tick_wait(t->tick, MAX(d->ready_ns, gpu_room(&g->gpu[gpu])));
		part.copy_ns = MAX(part.copy_ns, stage_batch(t->tick, &own));
	}
	gpus_copy(g, gpu, d->ready_ns, &part, &t->now.step[gpu]);
}

/* The parts of a step whose batches are all there, and who has one. */
static uint32_t share_out(struct train *t, bool even)
{
	struct train_now *now = &t->now;
	uint32_t n = t->gpus->n, used = 0;
	const struct delivery *last = &now->batch[now->n - 1];

	for (uint32_t i = 0; i < n; i++) {
		uint32_t samples = even		? gpus_cut(now->samples, n, i)
				   : i < now->n ? now->batch[i].n
						: 0;
		uint64_t bytes = now->bytes * samples / now->samples;

		now->part[i] = part_of(t, samples, bytes);
		vary(t, i, &now->part[i]);
		if (samples == 0)
			continue;
		used++;
		if (even && !is_cut(t))
			copy(t, i, last, samples, bytes);
	}
	return used;
}

/* When the last GPU begins to compute: all copies are over by then. */
static uint64_t all_begin(const struct train *t)
{
	uint64_t at = 0;

	for (uint32_t i = 0; i < t->gpus->n; i++)
		at = MAX(at, t->now.step[i].compute_start);
	return at;
}

/* True: the model's state is to be saved now. */
static bool step(struct train *t, bool even, struct gpu_step *ret)
{
	struct train_now *now = &t->now;
	struct account *a = now->account;
	uint64_t idle = now->gpus.gpu[0].compute_end, seen, end;
	uint32_t used = share_out(t, even);

	end = gpus_step(&now->gpus, used, now->part, now->step);
	train_account_all(t, idle, even);
	now->stalls = account_stalls(idle, &now->batch[even ? now->n - 1 : 0],
				     &now->step[0]);
	while (now->given < now->n)
		give_back(t);
	tick_wait(t->tick, all_begin(t));
	seen = tick_now(t->tick);
	if (a->steps == 1)
		now->first_end_ns = end;
	else
		hist_add(&a->step, seen - now->begun_ns);
	now->begun_ns = seen;
	*ret = now->step[0];
	now->n = now->given = now->samples = 0;
	now->bytes = 0;
	tick_wait(t->tick, gpu_room(&now->gpus.gpu[0]));
	return t->stepped && t->stepped(t->ctx);
}

/* Once the step is computed; no other begins before it is saved. */
static int save(struct train *t, struct err *err)
{
	struct gpus *g = &t->now.gpus;
	struct account *a = t->now.account;
	uint64_t from = g->gpu[0].compute_end, ns;
	int r;

	tick_wait(t->tick, from);
	r = t->save(t->ctx, err);
	gpus_hold(g, tick_now(t->tick));
	ns = g->gpu[0].compute_end - from;
	a->checkpoint_stall_ns += ns;
	for (uint32_t i = 0; i < MIN(t->gpus->n, TRACE_MAX_GPUS); i++)
		train_account_stall(t, i, "checkpoint", from, ns, a->steps - 1);
	return r;
}

void train_begin(struct train *t, uint64_t epoch, const uint32_t *order,
		 uint64_t n, struct account *account)
{
	struct train_now *now = &t->now;

	now->account = account;
	now->start_ns = now->begun_ns = tick_now(t->tick);
	now->wall_ns = tick_wall();
	now->n = now->given = now->samples = 0;
	now->bytes = 0;
	memset(account, 0, sizeof(*account));
	account->epoch = epoch;
	gpus_init(&now->gpus, t->gpus, now->start_ns);
	for (uint32_t i = 0; i < t->gpus->n; i++)
		now->rng[i] =
			rng_stream(t->seed, "jitter", epoch * GPUS_MAX + i);
	pipeline_begin(t->pipeline, epoch, order, n);
}

/* The next batch may be waiting for the memory of those that the GPUs have:
 * give back the oldest, and keep what the step has to know of it. */
static int give_back_early(struct train *t, struct err *err)
{
	struct train_now *now = &t->now;
	uint32_t i = now->given, room = t->batch;
	struct place *place = now->batch[i].place;

	if (!now->kept)
		now->kept = calloc((size_t)room * t->gpus->n, sizeof(*place));
	if (!now->kept)
		return err_set(err, -ENOMEM, "out of memory");
	memcpy(now->kept + (size_t)i * room, place,
	       now->batch[i].n * sizeof(*place));
	give_back(t);
	now->batch[i].place = now->kept + (size_t)i * room;
	return 0;
}

int train_release(struct train *t, struct delivery *d, struct err *err)
{
	int r = 0;

	while (r == 0 && d->place && t->now.given < t->now.n)
		r = give_back_early(t, err);
	pipeline_release(t->pipeline, d);
	return r;
}

int train_next(struct train *t, struct delivery *ret, struct err *err)
{
	struct train_now *now = &t->now;
	int r = 0;

	while (r == 0 && now->given < now->n && !pipeline_ready(t->pipeline))
		r = give_back_early(t, err);
	return r < 0 ? r
		     : pipeline_next(t->pipeline, now->gpus.gpu[0].compute_end,
				     ret, err);
}

/* The last one of an epoch waits for itself, and so does a save. */
static int step_remote(struct train *t, struct delivery *d,
		       struct gpu_step *ret, struct err *err)
{
	bool last = pipeline_left(t->pipeline) == 0, due;
	int r = train_remote_step(t->remote, t, d, ret, err);

	if (r < 0)
		return r;
	due = t->stepped && t->stepped(t->ctx);
	if (due || last)
		r = train_remote_drain(t->remote, t, ret, err);
	return r == 0 && due ? save(t, err) : r;
}

int train_step(struct train *t, struct delivery *d, struct gpu_step *ret,
	       struct err *err)
{
	t->now.stalls = (struct stalls){ 0 };
	if (t->remote)
		return step_remote(t, d, ret, err);

	struct train_now *now = &t->now;
	uint64_t left = pipeline_left(t->pipeline);
	uint32_t i = now->n++, n = is_cut(t) ? 1 : t->gpus->n;

	if (i == 0)
		now->even = t->gpus->n > 1 &&
			    (is_cut(t) ||
			     d->n + left < (uint64_t)t->batch * t->gpus->n);
	now->batch[i] = *d;
	now->samples += d->n;
	now->bytes += d->batch_bytes;
	now->step[i] = (struct gpu_step){ 0 };
	if (!now->even || is_cut(t))
		copy(t, i, &now->batch[i], d->n, d->batch_bytes);
	*ret = now->step[i];
	if (now->n < n && left)
		return 0;
	return step(t, now->even, ret) ? save(t, err) : 0;
}

int train_flush(struct train *t, int r, struct err *err)
{
	struct gpu_step last;
	int saved = 0;

	if ((r == 0 || r == -ENODATA) && t->now.n &&
	    step(t, t->now.even, &last))
		saved = save(t, err);
	return saved < 0 ? saved : r;
}

/* Batches that no step came of. */
static void drop(struct train *t)
{
	struct train_now *now = &t->now;

	while (now->given < now->n)
		pipeline_release(t->pipeline, &now->batch[now->given++]);
	now->n = now->given = now->samples = 0;
	now->bytes = 0;
}

int train_end(struct train *t, int r)
{
	struct account *a = t->now.account;
	uint64_t end;

	drop(t);
	/* not when the server failed; an interrupt has ended its socket */
	if (t->remote && (r == 0 || r == -ENODATA || r == -ECANCELED)) {
		struct gpu_step last;
		int k = train_remote_drain(t->remote, t, &last, NULL);

		r = k < 0 ? k : r;
	}
	free(TAKE_PTR(t->now.kept));
	tick_wait(t->tick, t->now.gpus.gpu[0].compute_end);
	end = tick_now(t->tick);
	if (a->steps)
		hist_add(&a->step, end - t->now.begun_ns);
	if (a->steps > 1)
		a->au_elapsed_ns = end - t->now.first_end_ns;
	a->elapsed_ns = end - t->now.start_ns;
	a->wall_ns = tick_wall() - t->now.wall_ns;
	if (r < 0 && r != -ENODATA) {
		pipeline_interrupt(t->pipeline);
		pipeline_join(t->pipeline);
	}
	pipeline_work(t->pipeline, &a->work);
	return r == -ENODATA ? 0 : r;
}

uint64_t train_load_model(struct train *t)
{
	uint64_t start = tick_now(t->tick);
	uint64_t end;

	gpus_init(&t->now.gpus, t->gpus, start);
	end = gpus_load_model(&t->now.gpus, start,
			      gpu_model_transfer_ns(t->model),
			      t->model->parameters * sizeof(float));
	tick_wait(t->tick, end);
	return end - start;
}

static int run_ceiling(struct train *t, uint32_t batch, struct ceiling *ret,
		       struct err *err)
{
	struct pipeline_config c = { .engine = &engine_null,
				     .prep = &prep_none,
				     .tick = t->tick,
				     .batch = batch,
				     .sample_bytes = t->sample_bytes };
	_cleanup_free_ struct account *a = malloc(sizeof(*a));
	struct delivery d;
	struct gpu_step s;
	int r;

	if (!a)
		return err_set(err, -ENOMEM, "out of memory");
	r = pipeline_new(&c, &t->pipeline, err);
	if (r < 0)
		return r;
	train_begin(t, 0, NULL, (uint64_t)CEILING_STEPS * t->batch * t->gpus->n,
		    a);
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
	struct gpus_part p = part_of(&t, t.batch, t.batch * t.sample_bytes);
	double ns = (double)(p.copy_ns + p.prep_ns + p.forward_ns +
			     p.backward_ns + p.optimizer_ns) *
		    CEILING_STEPS;
	int r;

	ret->time_scale = MIN(time_scale, (double)CEILING_WALL_NS / ns);
	t.remote = NULL;
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
