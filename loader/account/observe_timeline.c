/* SPDX-License-Identifier: MIT */
#include "loader/account/observe_timeline.h"

#include <inttypes.h>

#include "common/util.h"

/* Returns the start of the next stall. */
static uint64_t show_stall(struct timeline *t, uint32_t gpu, const char *name,
			   uint64_t from, uint64_t ns, uint64_t step)
{
	if (ns)
		trace_slice(t->trace, trace_gpu(gpu, TRACE_IDLE), name, from,
			    from + ns, "\"step\":%" PRIu64, step);
	return from + ns;
}

static uint64_t show_wait(struct timeline *t, uint32_t gpu, uint64_t at,
			  const struct stalls *s, uint64_t step)
{
	at = show_stall(t, gpu, "fetch", at, s->fetch_ns, step);
	at = show_stall(t, gpu, "prep", at, s->prep_ns, step);
	return show_stall(t, gpu, "pin", at, s->pin_ns, step);
}

static void show_work(struct timeline *t, uint32_t gpu,
		      const struct delivery *d, const struct gpu_step *s)
{
	uint64_t n = t->step;

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
		    n, t->epoch, d->n);
}

/* From the end of the GPU's compute to the end of the step. Under DataParallel
 * the other GPUs also wait for the first one's optimiser. */
static void show_end(struct timeline *t, uint32_t gpu, const struct gpu_step *s,
		     const struct stalls *late, uint64_t n)
{
	uint64_t from = s->step_end - s->optimizer_ns, at, before;

	at = show_wait(t, gpu, s->compute_end, late, n);
	at = show_stall(t, gpu, "barrier", at,
			s->barrier_wait_ns - stalls_ns(late), n);
	/* DataParallel scatters the batch and broadcasts the model before it
	 * computes */
	before = s->allreduce_ns - (from - at);
	show_stall(t, gpu, "all-reduce", s->compute_start - s->prep_ns - before,
		   before, n);
	show_stall(t, gpu, "all-reduce", at, from - at, n);
	if (s->optimizer_ns)
		trace_slice(t->trace, trace_gpu(gpu, TRACE_COMPUTE),
			    "optimiser", from, s->step_end, "\"step\":%" PRIu64,
			    n);
}

static void show_batch(struct timeline *t, const struct delivery *d,
		       uint64_t copy_start, uint32_t n_gpus)
{
	uint64_t n = t->step, from = d->ready_ns - d->pin_ns;

	if (d->pin_ns && n_gpus > 1)
		trace_overlap(t->trace, TRACE_PIN, "pin", from, d->ready_ns,
			      "\"step\":%" PRIu64, n);
	else if (d->pin_ns)
		trace_slice(t->trace, TRACE_PIN, "pin", from, d->ready_ns,
			    "\"step\":%" PRIu64, n);
	trace_counter(t->trace, "batches ready", copy_start, d->queued);
}

static void done(void *ctx, const struct step_done *s)
{
	struct timeline *t = ctx;

	t->epoch = s->epoch;
	t->step = s->step;
	t->n_gpus = MIN(s->n_gpus, TRACE_MAX_GPUS);
	for (uint32_t i = 0; i < s->n_batches; i++)
		show_batch(t, &s->batch[i], s->gpu[i].copy_start, s->n_gpus);
	for (uint32_t i = 0; i < t->n_gpus; i++) {
		const struct delivery *d = step_batch(s, i);
		const struct gpu_step *g = &s->gpu[i];
		struct stalls own = account_stalls(s->idle_ns, d, g);
		uint64_t at = show_wait(t, i, s->idle_ns, &own, t->step);

		show_stall(t, i, "transfer", at, g->transfer_stall_ns, t->step);
		show_work(t, i, d, g);
		show_end(t, i, g, &s->late[i], t->step);
	}
}

static void held(void *ctx, const char *why, uint64_t from, uint64_t ns)
{
	struct timeline *t = ctx;

	for (uint32_t i = 0; i < t->n_gpus; i++)
		show_stall(t, i, why, from, ns, t->step);
}

const struct observer observe_timeline = {
	.done = done,
	.held = held,
};
