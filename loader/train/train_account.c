/* SPDX-License-Identifier: MIT */
#include "loader/train/train_account.h"

#include <inttypes.h>

#include "common/util.h"
#include "loader/account/step_log.h"
#include "loader/pipeline/trace.h"

uint64_t train_account_stall(struct train *t, uint32_t gpu, const char *name,
			     uint64_t from, uint64_t ns, uint64_t step)
{
	if (ns)
		trace_slice(t->trace, trace_gpu(gpu, TRACE_IDLE), name, from,
			    from + ns, "\"step\":%" PRIu64, step);
	return from + ns;
}

static uint64_t show_wait(struct train *t, uint32_t gpu, uint64_t at,
			  const struct stalls *s, uint64_t step)
{
	at = train_account_stall(t, gpu, "fetch", at, s->fetch_ns, step);
	at = train_account_stall(t, gpu, "prep", at, s->prep_ns, step);
	return train_account_stall(t, gpu, "pin", at, s->pin_ns, step);
}

static void show_work(struct train *t, uint32_t gpu, const struct delivery *d,
		      const struct gpu_step *s)
{
	const struct account *a = t->now.account;
	uint64_t n = a->steps - 1;

	if (s->copy_end > s->copy_start)
		trace_slice(t->trace, trace_gpu(gpu, TRACE_COPY), "copy",
			    s->copy_start, s->copy_end,
			    "\"step\":%" PRIu64 ",\"bytes\":%" PRIu64, n,
			    d->batch_bytes);
	if (s->prep_ns)
		trace_slice(t->trace, trace_gpu(gpu, TRACE_COMPUTE), "prepare",
			    s->compute_start - s->prep_ns, s->compute_start,
			    "\"step\":%" PRIu64, n);
	trace_slice(t->trace, trace_gpu(gpu, TRACE_COMPUTE), "step",
		    s->compute_start, s->compute_end,
		    "\"step\":%" PRIu64 ",\"epoch\":%" PRIu64 ",\"samples\":%u",
		    n, a->epoch, d->n);
}

/* From the GPU's own end to the step's. Of DataParallel's GPUs the others wait
 * for the first one's optimiser, too. */
static void show_end(struct train *t, uint32_t gpu, const struct gpu_step *s,
		     const struct stalls *late, uint64_t n)
{
	uint64_t from = s->step_end - s->optimizer_ns, at, before;

	at = show_wait(t, gpu, s->compute_end, late, n);
	at = train_account_stall(t, gpu, "barrier", at,
				 s->barrier_wait_ns - stalls_ns(late), n);
	/* DataParallel hands out parts and model before it computes */
	before = s->allreduce_ns - (from - at);
	train_account_stall(t, gpu, "all-reduce",
			    s->compute_start - s->prep_ns - before, before, n);
	train_account_stall(t, gpu, "all-reduce", at, from - at, n);
	if (s->optimizer_ns)
		trace_slice(t->trace, trace_gpu(gpu, TRACE_COMPUTE),
			    "optimiser", from, s->step_end, "\"step\":%" PRIu64,
			    n);
}

/* A GPU's part of a step, to the timeline and the log of steps, where there
 * are any. */
static void show(struct train *t, uint32_t gpu, uint64_t idle,
		 const struct delivery *d, const struct gpu_step *s,
		 const struct stalls *late)
{
	struct stalls own = account_stalls(idle, d, s);
	const struct account *a = t->now.account;
	uint64_t n = a->steps - 1, at;

	if (t->step_log)
		step_log_add(t->step_log, a->epoch, n, gpu, idle, d, s, late);
	if (!t->trace || gpu >= TRACE_MAX_GPUS)
		return;
	at = show_wait(t, gpu, idle, &own, n);
	train_account_stall(t, gpu, "transfer", at, s->transfer_stall_ns, n);
	show_work(t, gpu, d, s);
	show_end(t, gpu, s, late, n);
}

static void show_batch(struct train *t, const struct delivery *d,
		       uint64_t copy_start)
{
	uint64_t n = t->now.account->steps - 1, from = d->ready_ns - d->pin_ns;

	if (d->pin_ns && t->gpus->n > 1)
		trace_overlap(t->trace, TRACE_PIN, "pin", from, d->ready_ns,
			      "\"step\":%" PRIu64, n);
	else if (d->pin_ns)
		trace_slice(t->trace, TRACE_PIN, "pin", from, d->ready_ns,
			    "\"step\":%" PRIu64, n);
	trace_counter(t->trace, "batches ready", copy_start, d->queued);
}

/* The GPU that the others wait for. */
static uint32_t slowest(const struct train *t)
{
	const struct gpu_step *step = t->now.step;
	uint32_t last = 0;

	for (uint32_t i = 1; i < t->gpus->n; i++)
		if (step[i].compute_end > step[last].compute_end)
			last = i;
	return last;
}

/* What of GPU i's wait for the slowest is for that one's batch. */
static struct stalls late_batch(const struct train *t, uint32_t i,
				uint64_t idle)
{
	const struct train_now *now = &t->now;
	uint32_t last = slowest(t);
	uint64_t own = now->step[i].data_wait_ns;
	uint64_t its = now->step[last].data_wait_ns;

	if (its <= own)
		return (struct stalls){ 0 };
	return account_late(MIN(its - own, now->step[i].barrier_wait_ns), idle,
			    &now->batch[last], &now->step[last]);
}

void train_account_all(struct train *t, uint64_t idle, bool even)
{
	struct train_now *now = &t->now;
	struct account *a = now->account;

	account_begin_step(a, t->gpus->n);
	for (uint32_t i = 0; i < now->n; i++) {
		account_batch(a, &now->batch[i]);
		show_batch(t, &now->batch[i], now->step[i].copy_start);
		if (t->taken)
			t->taken(t->ctx, &now->batch[i]);
	}
	for (uint32_t i = 0; i < t->gpus->n; i++) {
		uint32_t of = even ? now->n - 1 : MIN(i, now->n - 1);
		struct stalls late = { 0 };

		if (!even) /* else they have one batch */
			late = late_batch(t, i, idle);
		account_gpu(a, i, idle, &now->batch[of], &now->step[i], &late);
		show(t, i, idle, &now->batch[of], &now->step[i], &late);
	}
}

void train_account_one(struct train *t, uint64_t idle, const struct delivery *d,
		       const struct gpu_step *s)
{
	struct stalls none = { 0 };

	account_begin_step(t->now.account, 1);
	account_batch(t->now.account, d);
	show_batch(t, d, s->copy_start);
	account_gpu(t->now.account, 0, idle, d, s, &none);
	t->now.stalls = account_stalls(idle, d, s);
	show(t, 0, idle, d, s, &none);
}
