/* SPDX-License-Identifier: MIT */
#include "loader/train/train.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "common/tick.h"
#include "common/util.h"
#include "loader/pipeline/pipeline.h"

/* The driver's copy of a batch in pageable memory. */

/* Size of the staging buffer. arbitrary: stays in the second-level cache, which
 * is why drivers stage piece by piece */
enum { STAGE_BYTES = 64 * 1024 };

/*
 * A device cannot read pageable memory: the driver copies the batch piece by
 * piece into its own buffer, on the calling thread. This copy is real. The
 * profile's transfer time includes its cost; only the rest of that time is
 * waited for. Returns the emulated ns that the copy took.
 */
static uint64_t stage_batch(const struct tick *tick, const struct delivery *d)
{
	uint64_t start = tick_now(tick);
	char piece[STAGE_BYTES];

	for (uint32_t i = 0; i < d->n; i++)
		for (size_t at = 0; at < d->place[i].n; at += STAGE_BYTES) {
			size_t n = MIN(STAGE_BYTES, d->place[i].n - at);

			memcpy(piece, (const char *)d->place[i].data + at, n);
			/* keeps the compiler from dropping the copy */
			__asm__ volatile("" ::"r"(piece) : "memory");
		}
	return tick_now(tick) - start;
}

/* Release the oldest batch that is held; its memory is free after its copy. */
static void give_back(struct train *t)
{
	struct train_now *now = &t->now;
	uint32_t i = now->given++;

	tick_wait(t->tick, now->copy_end[i]);
	intake_release(t->intake, &now->next->batch[i]);
}

static uint64_t stage(const struct tick *tick, const void *memory)
{
	return stage_batch(tick, memory);
}

/* Copy `samples` of batch i to a GPU; a batch for several GPUs goes to the
 * first. */
static int copy(struct train *t, uint32_t gpu, uint32_t i, uint32_t samples,
		uint64_t bytes, struct err *err)
{
	struct train_now *now = &t->now;
	const struct delivery *d = &now->next->batch[i];
	struct delivery own = *d;
	struct gpu_step s;
	struct device_batch b = { .samples = samples,
				  .bytes = bytes,
				  .ready_ns = d->ready_ns,
				  .memory = &own };
	int r;

	own.n = MIN(samples, d->n);
	/* memory of released batches is gone */
	if (!t->pinned && d->place && i >= now->given)
		b.stage = stage;
	r = device_copy(t->device, gpu, &b, &s, err);
	if (r < 0)
		return r;
	now->copy_end[gpu] = s.copy_end;
	if (!now->last.step_end) /* else the previous step was reported */
		now->last = s;
	return 0;
}

/* By how much the step's sequences are shorter than the model's. */
static double shorter(const struct train *t)
{
	const struct train_pad *p = &t->pad;
	uint64_t inputs, padded;

	if (!p->multiple || !p->token_bytes || !t->now.longest)
		return 0;
	/* the last token is a label */
	inputs = MAX(t->now.longest / p->token_bytes, 2) - 1;
	padded = (inputs + p->multiple - 1) / p->multiple * p->multiple;
	return 1 - (double)MIN(padded, p->length) / (double)p->length;
}

/* Each GPU's part of a step whose batches are all there. Copies a shared batch
 * to its GPUs now. */
static int share_out(struct train *t, struct device_part *part, struct err *err)
{
	struct train_now *now = &t->now;
	const struct train_flight *f = now->next;
	uint32_t n = t->gpus->n;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < n; i++) {
		uint32_t samples = f->even    ? gpus_cut(now->samples, n, i)
				   : i < f->n ? f->batch[i].n
					      : 0;

		part[i].samples = samples;
		part[i].shorter = shorter(t);
		part[i].bytes = now->bytes * samples / now->samples;
		if (f->even && samples && !device_cuts(t->gpus))
			r = copy(t, i, f->n - 1, samples, part[i].bytes, err);
	}
	return r;
}

/* Reuse the flight of the last but one step for the next. */
static void turn(struct train_now *now)
{
	now->next = &now->flight[now->next == &now->flight[0]];
	now->next->n = 0;
	now->given = now->samples = 0;
	now->bytes = now->longest = 0;
}

static int step(struct train *t, struct err *err)
{
	struct train_now *now = &t->now;
	struct device_part part[GPUS_MAX];
	const struct train_flight *f = now->next;
	int r = share_out(t, part, err);

	if (r < 0)
		return r;
	device_submit(t->device, part, now->next);
	for (uint32_t i = 0; i < f->n; i++)
		observers_taken(&t->observers, &f->batch[i]);
	while (now->given < f->n)
		give_back(t);
	r = device_room(t->device, 1, err);
	if (r < 0)
		return r;
	turn(now);
	return observers_after(&t->observers, t->device, err);
}

static struct step_done of_step(const struct train *t,
				const struct device_step *s)
{
	const struct train_flight *f = s->user;

	return (struct step_done){ .epoch = t->now.epoch,
				   .step = t->now.n_done,
				   .idle_ns = s->idle_ns,
				   .n_gpus = t->gpus->n,
				   .n_batches = f->n,
				   .even = f->even,
				   .batch = f->batch,
				   .gpu = s->gpu };
}

static void done(void *ctx, const struct device_step *s)
{
	struct train *t = ctx;
	struct train_now *now = &t->now;
	struct step_done all = of_step(t, s);

	now->n_done++;
	if (t->sync)
		all.other = sync_other(t->sync);
	now->last = s->gpu[0];
	now->stalls = account_stalls(s->idle_ns, step_batch(&all, 0), s->gpu);
	observers_done(&t->observers, &all);
}

static void begun(void *ctx, uint64_t at)
{
	struct train *t = ctx;

	observers_begun(&t->observers, at);
}

static void reach(void *ctx, const struct device_step *s,
		  const struct gpus_reach *r)
{
	struct train *t = ctx;
	struct step_done all = of_step(t, s);
	uint32_t last = observers_slowest(&all);
	struct stalls data = account_stalls(s->idle_ns, step_batch(&all, last),
					    &s->gpu[last]);

	sync_start(t->sync, s->idle_ns, r, &data,
		   s->gpu[last].transfer_stall_ns);
}

static int reduced(void *ctx, struct gpus_reach *ret_all, uint64_t *ret_reduced,
		   struct err *err)
{
	struct train *t = ctx;

	return sync_finish(t->sync, ret_all, ret_reduced, err);
}

void train_begin(struct train *t, uint64_t epoch, const uint32_t *order,
		 uint64_t n)
{
	struct train_now *now = &t->now;

	now->epoch = epoch;
	now->n_done = 0;
	turn(now);
	observers_begin(&t->observers, epoch, tick_now(t->tick));
	t->device->events = (struct device_events){
		.done = done,
		.begun = begun,
		.ctx = t,
		.reach = t->sync ? reach : NULL,
		.reduced = t->sync ? reduced : NULL,
	};
	device_begin(t->device, epoch);
	if (t->sync)
		sync_begin(t->sync, t->device->idle_ns);
	intake_begin(t->intake, epoch, order, n);
}

/* The next batch may wait for memory that the GPUs' batches hold: release the
 * oldest, and keep its slots for the step. */
static int give_back_early(struct train *t, struct err *err)
{
	struct train_now *now = &t->now;
	struct delivery *d = &now->next->batch[now->given];
	uint32_t room = 2 * t->batch; /* with those left out */
	struct place *kept;

	if (!now->kept)
		now->kept = calloc((size_t)room * t->gpus->n, sizeof(*kept));
	if (!now->kept)
		return err_set(err, -ENOMEM, "out of memory");
	kept = now->kept + (size_t)now->given * room;
	memcpy(kept, d->place, (d->n + d->n_failed) * sizeof(*kept));
	give_back(t);
	d->place = kept;
	return 0;
}

int train_release(struct train *t, struct delivery *d, struct err *err)
{
	int r = 0;

	while (r == 0 && d->place && t->now.given < t->now.next->n)
		r = give_back_early(t, err);
	intake_release(t->intake, d);
	return r;
}

int train_next(struct train *t, uint64_t until, struct delivery *ret,
	       struct err *err)
{
	struct train_now *now = &t->now;
	int r = 0;

	while (r == 0 && now->given < now->next->n && !intake_ready(t->intake))
		r = give_back_early(t, err);
	return r < 0 ? r
		     : intake_next(t->intake, t->device->idle_ns, until, ret,
				   err);
}

int train_step(struct train *t, struct delivery *d, struct gpu_step *ret,
	       struct err *err)
{
	struct train_now *now = &t->now;
	struct train_flight *f = now->next;
	uint64_t left = intake_left(t->intake);
	bool cut = device_cuts(t->gpus);
	uint32_t i = f->n++, n = cut ? 1 : t->gpus->n;
	int r = 0;

	if (i == 0)
		f->even = t->gpus->n > 1 &&
			  (cut || d->n + d->left_out + left <
					  (uint64_t)t->batch * t->gpus->n);
	f->batch[i] = *d;
	now->samples += d->n;
	now->bytes += d->batch_bytes;
	now->longest = MAX(now->longest, d->longest);
	now->copy_end[i] = 0;
	now->stalls = (struct stalls){ 0 };
	now->last = (struct gpu_step){ 0 };
	if (!f->even || cut)
		r = copy(t, i, i, d->n, d->batch_bytes, err);
	if (r == 0 && (i + 1 == n || !left))
		r = step(t, err);
	/* the last step of an epoch waits for its own end */
	if (r == 0 && !left)
		r = device_drain(t->device, err);
	*ret = now->last;
	return r;
}

int train_flush(struct train *t, int r, struct err *err)
{
	int failed = 0;

	if ((r == 0 || r == -ENODATA) && t->now.next->n)
		failed = step(t, err);
	return failed < 0 ? failed : r;
}

/* Drop batches that make no step. */
static void drop(struct train *t)
{
	struct train_now *now = &t->now;

	while (now->given < now->next->n)
		intake_release(t->intake, &now->next->batch[now->given++]);
	now->next->n = 0;
}

int train_end(struct train *t, int r)
{
	drop(t);
	/* not after a device failure; an interrupt ends a server's GPU, too */
	if (r == 0 || r == -ENODATA || r == -ECANCELED) {
		int failed = device_drain(t->device, NULL);

		r = failed < 0 ? failed : r;
	}
	free(TAKE_PTR(t->now.kept));
	tick_wait(t->tick, t->device->idle_ns);
	observers_end(&t->observers, tick_now(t->tick));
	if (r < 0 && r != -ENODATA) {
		intake_interrupt(t->intake);
		intake_join(t->intake);
	}
	return r == -ENODATA ? 0 : r;
}
