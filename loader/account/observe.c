/* SPDX-License-Identifier: MIT */
#include "loader/account/observe.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "common/units.h"
#include "common/util.h"

/* --- the account --------------------------------------------------------- */

static void begin_epoch(void *ctx, uint64_t epoch, uint64_t now_ns)
{
	struct observed *o = ctx;

	o->start_ns = o->begun_ns = now_ns;
	o->wall_ns = tick_wall();
	memset(o->account, 0, sizeof(*o->account));
	o->account->epoch = epoch;
}

static void count_step(void *ctx, const struct step_done *s)
{
	struct observed *o = ctx;
	struct train_account *a = o->account;

	account_begin_step(a, s->n_gpus);
	for (uint32_t i = 0; i < s->n_batches; i++)
		account_batch(a, &s->batch[i]);
	for (uint32_t i = 0; i < s->n_gpus; i++)
		account_gpu(a, i, s->idle_ns, step_batch(s, i), &s->gpu[i],
			    &s->late[i]);
	if (a->steps == 1)
		o->first_end_ns = s->gpu[0].step_end;
}

static void count_begun(void *ctx, uint64_t at)
{
	struct observed *o = ctx;

	if (o->account->steps > 1)
		hist_add(&o->account->step, at - o->begun_ns);
	o->begun_ns = at;
}

static void count_held(void *ctx, const char *why, uint64_t from, uint64_t ns)
{
	struct observed *o = ctx;

	(void)why;
	(void)from;
	o->account->checkpoint_stall_ns += ns;
}

static void end_epoch(void *ctx, uint64_t now_ns)
{
	struct observed *o = ctx;
	struct train_account *a = o->account;

	if (a->steps)
		hist_add(&a->step, now_ns - o->begun_ns);
	if (a->steps > 1)
		a->au_elapsed_ns = now_ns - o->first_end_ns;
	a->elapsed_ns = now_ns - o->start_ns;
	a->wall_ns = tick_wall() - o->wall_ns;
}

const struct observer observe_account = {
	.begin = begin_epoch,
	.done = count_step,
	.begun = count_begun,
	.held = count_held,
	.end = end_epoch,
};

/* --- the timeline -------------------------------------------------------- */

/* Returns the start of the next stall. */
static uint64_t show_stall(struct step_timeline *t, uint32_t gpu,
			   const char *name, uint64_t from, uint64_t ns,
			   uint64_t step)
{
	if (ns)
		trace_slice(t->trace, trace_gpu(gpu, TRACE_IDLE), name, from,
			    from + ns, "\"step\":%" PRIu64, step);
	return from + ns;
}

static uint64_t show_wait(struct step_timeline *t, uint32_t gpu, uint64_t at,
			  const struct stalls *s, uint64_t step)
{
	at = show_stall(t, gpu, "fetch", at, s->fetch_ns, step);
	at = show_stall(t, gpu, "prep", at, s->prep_ns, step);
	return show_stall(t, gpu, "pin", at, s->pin_ns, step);
}

static void show_work(struct step_timeline *t, uint32_t gpu,
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
static void show_end(struct step_timeline *t, uint32_t gpu,
		     const struct gpu_step *s, const struct stalls *late,
		     uint64_t n)
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

static void show_batch(struct step_timeline *t, const struct delivery *d,
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

static void show_step(void *ctx, const struct step_done *s)
{
	struct step_timeline *t = ctx;

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

static void show_held(void *ctx, const char *why, uint64_t from, uint64_t ns)
{
	struct step_timeline *t = ctx;

	for (uint32_t i = 0; i < t->n_gpus; i++)
		show_stall(t, i, why, from, ns, t->step);
}

const struct observer observe_timeline = {
	.done = show_step,
	.held = show_held,
};

/* --- the log ------------------------------------------------------------- */

int step_log_open(const char *path, FILE **ret, struct err *err)
{
	int r = util_output_stream(path, O_CREAT | O_TRUNC, ret);

	if (r < 0)
		return err_set(err, r, "%s: %s", path, strerror(-r));
	fputs("epoch,step,samples,failed,queued,idle_s,complete_s,ready_s,"
	      "copy_start_s,copy_end_s,compute_start_s,compute_end_s,"
	      "fetch_stall_s,prep_stall_s,pin_stall_s,transfer_stall_s,"
	      "gpu,prep_gpu_s,barrier_wait_s,allreduce_s,optimizer_s,"
	      "host_stall_s\n",
	      *ret);
	return 0;
}

static void seconds(FILE *f, uint64_t ns)
{
	fprintf(f, ",%.9f", (double)ns / (double)NS_PER_S);
}

static void log_gpu(FILE *f, const struct step_done *step, uint32_t gpu)
{
	const struct delivery *d = step_batch(step, gpu);
	const struct gpu_step *s = &step->gpu[gpu];
	const struct stalls *late = &step->late[gpu];
	struct stalls own = account_stalls(step->idle_ns, d, s);

	fprintf(f, "%" PRIu64 ",%" PRIu64 ",%u,%u,%u", step->epoch, step->step,
		d->n - d->n_zeros, d->n_failed, d->queued);
	seconds(f, step->idle_ns);
	seconds(f, d->complete_ns);
	seconds(f, d->ready_ns);
	seconds(f, s->copy_start);
	seconds(f, s->copy_end);
	seconds(f, s->compute_start);
	seconds(f, s->compute_end);
	seconds(f, own.fetch_ns + late->fetch_ns);
	seconds(f, own.prep_ns + late->prep_ns);
	seconds(f, own.pin_ns + late->pin_ns);
	seconds(f, s->transfer_stall_ns);
	fprintf(f, ",%" PRIu32, gpu);
	seconds(f, s->prep_ns);
	seconds(f, s->barrier_wait_ns - stalls_ns(late));
	seconds(f, s->allreduce_ns);
	seconds(f, s->optimizer_ns);
	seconds(f, s->host_stall_ns);
	fputc('\n', f);
}

static void log_step(void *ctx, const struct step_done *s)
{
	for (uint32_t i = 0; i < s->n_gpus; i++)
		log_gpu(ctx, s, i);
}

const struct observer observe_steps = { .done = log_step };

int step_log_close(FILE *f, const char *path, struct err *err)
{
	int r;

	if (!f)
		return 0;
	r = util_flush(f);
	if (fclose(f) && r == 0)
		r = -errno;
	return r < 0 ? err_set(err, r, "%s: not all steps were written: %s",
			       path, strerror(-r))
		     : 0;
}
