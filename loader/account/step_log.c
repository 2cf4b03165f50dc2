/* SPDX-License-Identifier: MIT */
#include "loader/account/step_log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "common/util.h"
#include "common/units.h"

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

static void add(FILE *f, const struct step_done *step, uint32_t gpu)
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

static void done(void *ctx, const struct step_done *s)
{
	for (uint32_t i = 0; i < s->n_gpus; i++)
		add(ctx, s, i);
}

const struct observer observe_steps = { .done = done };

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
