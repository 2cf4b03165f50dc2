/* SPDX-License-Identifier: MIT */
#include "emu/gpu/gpu.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "common/units.h"
#include "common/word.h"

static const char *const transfers[] = {
	[GPU_TRANSFER_OVERLAP] = "overlap",
	[GPU_TRANSFER_BLOCKING] = "blocking",
};

int gpu_transfer_parse(const char *s, enum gpu_transfer *ret, struct err *err)
{
	return WORD_INTO(transfers, "transfer mode", s, ret, err);
}

const char *gpu_transfer_name(enum gpu_transfer transfer)
{
	return transfers[transfer];
}

void gpu_init(struct gpu *g, enum gpu_transfer transfer, uint64_t now)
{
	*g = (struct gpu){
		.transfer = transfer,
		.compute_end = now,
		.room_ns = now,
	};
}

void gpu_copy(struct gpu *g, uint64_t start, uint64_t end, struct gpu_step *ret)
{
	uint64_t free_ns = g->compute_end;

	g->host_end = start + g->host_ns;
	*ret = (struct gpu_step){
		.copy_start = start,
		.copy_end = end,
		.data_wait_ns = start > free_ns ? start - free_ns : 0,
	};
}

void gpu_compute(struct gpu *g, uint64_t before_ns, uint64_t compute_ns,
		 struct gpu_step *s)
{
	uint64_t free_ns = g->compute_end, start = MAX(s->copy_end, free_ns);

	s->transfer_stall_ns = start - free_ns - s->data_wait_ns;
	start += before_ns;
	s->host_stall_ns = g->host_end > start + compute_ns
				   ? g->host_end - compute_ns - start
				   : 0;
	s->compute_start = start + s->host_stall_ns;
	s->compute_end = s->compute_start + compute_ns;
}

void gpu_end(struct gpu *g, uint64_t end, struct gpu_step *s)
{
	/* Overlapped: the previous batch frees its buffer when its step ends,
	 * and the copy stream is free when this copy ends. */
	g->room_ns = g->transfer == GPU_TRANSFER_OVERLAP
			     ? MAX(s->copy_end, g->compute_end)
			     : end;
	g->room_ns = MAX(g->room_ns, g->host_end);
	g->compute_end = s->step_end = end;
}

void gpu_hold(struct gpu *g, uint64_t until)
{
	g->compute_end = MAX(g->compute_end, until);
	g->room_ns = MAX(g->room_ns, until);
}

uint64_t gpu_room(const struct gpu *g)
{
	return g->room_ns;
}

double gpu_jitter(struct rng *rng, double cv)
{
	double variance = log1p(cv * cv);

	if (cv <= 0)
		return 1;
	return exp(sqrt(variance) * rng_normal(rng) - variance / 2);
}

uint64_t gpu_waiting_bytes(const struct gpu_beside *b, uint64_t batch)
{
	return b->sample_bytes * b->waiting * batch;
}

static double mib(uint64_t bytes)
{
	return (double)bytes / (double)MIB;
}

static double beside_mib(const struct gpu_beside *b, uint64_t batch)
{
	return b->prep_mib + mib(b->bucket_bytes) +
	       mib(gpu_waiting_bytes(b, batch));
}

static double peak_mib(const struct gpu_profile *p, const struct gpu_model *m,
		       uint64_t batch)
{
	struct gpu_cost cost;

	gpu_profile_cost(p, m, batch, &cost);
	return cost.peak_mib;
}

uint64_t gpu_largest_batch(const struct gpu_profile *p,
			   const struct gpu_model *m,
			   const struct gpu_beside *beside)
{
	uint64_t alone = gpu_profile_largest_batch(p, m), lo = 0, hi = alone;
	double room = peak_mib(p, m, alone);

	if (beside_mib(beside, 1) <= 0)
		return alone;
	if (!m->last_is_limit || p->resized)
		room = fmax(room, p->usable_memory * p->memory_mib);
	while (lo < hi) {
		uint64_t mid = hi - (hi - lo) / 2;

		if (peak_mib(p, m, mid) + beside_mib(beside, mid) <= room)
			lo = mid;
		else
			hi = mid - 1;
	}
	return lo;
}

static int too_large(const struct gpu_profile *p, const struct gpu_model *m,
		     const struct gpu_beside *beside, uint64_t batch,
		     uint64_t largest, struct err *err)
{
	char also[128] = "";

	if (beside_mib(beside, batch) > 0)
		snprintf(also, sizeof(also),
			 " besides other memory in use (MiB: transforms %.0f, "
			 "gradient buckets %.0f, waiting batches %.0f)",
			 beside->prep_mib, mib(beside->bucket_bytes),
			 mib(gpu_waiting_bytes(beside, batch)));
	return err_set(err, -E2BIG,
		       "out of GPU memory: a batch of %" PRIu64
		       " of %s does not fit %s%s; the largest that fits "
		       "is %" PRIu64,
		       batch, m->name, p->name, also, largest);
}

int gpu_check_batch(const struct gpu_profile *p, const struct gpu_model *m,
		    const struct gpu_beside *beside, uint64_t batch,
		    bool extrapolate, struct err *err)
{
	uint64_t largest = gpu_largest_batch(p, m, beside);
	char batches[GPU_BATCHES_TEXT];
	struct gpu_cost cost;

	if (batch > largest)
		return too_large(p, m, beside, batch, largest, err);
	gpu_profile_cost(p, m, batch, &cost);
	if (cost.origin == GPU_EXTRAPOLATED && !extrapolate)
		return err_set(err, -ERANGE,
			       "a batch of %" PRIu64 " of %s was not measured "
			       "on %s (measured: %s); --extrapolate continues "
			       "the table",
			       batch, m->name, p->name,
			       gpu_model_batches(m, batches));
	return 0;
}
