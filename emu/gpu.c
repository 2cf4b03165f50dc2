/* SPDX-License-Identifier: MIT */
#include "emu/gpu.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/util.h"

int gpu_transfer_parse(const char *s, enum gpu_transfer *ret, struct err *err)
{
	if (!strcmp(s, "overlap"))
		*ret = GPU_TRANSFER_OVERLAP;
	else if (!strcmp(s, "blocking"))
		*ret = GPU_TRANSFER_BLOCKING;
	else
		return err_set(err, -EINVAL,
			       "unknown transfer mode '%s' (known: overlap "
			       "blocking)",
			       s);
	return 0;
}

void gpu_init(struct gpu *g, enum gpu_transfer transfer, uint64_t now)
{
	*g = (struct gpu){
		.transfer = transfer,
		.compute_end = now,
		.room_ns = now,
	};
}

void gpu_submit(struct gpu *g, uint64_t ready, uint64_t copy_ns,
		uint64_t compute_ns, struct gpu_step *ret)
{
	uint64_t free_ns = g->compute_end;
	struct gpu_step s;

	s.copy_start = MAX(ready, gpu_room(g));
	s.copy_end = s.copy_start + copy_ns;
	s.compute_start = MAX(s.copy_end, free_ns);
	s.compute_end = s.compute_start + compute_ns;
	s.data_wait_ns = s.copy_start > free_ns ? s.copy_start - free_ns : 0;
	s.transfer_stall_ns = s.compute_start - free_ns - s.data_wait_ns;

	/* Overlapped, the batch before this one leaves its buffer when its
	 * computation ends, and the copy stream is free when this copy ends. */
	g->room_ns = g->transfer == GPU_TRANSFER_OVERLAP
			     ? MAX(s.copy_end, free_ns)
			     : s.compute_end;
	g->compute_end = s.compute_end;
	*ret = s;
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

int gpu_check_batch(const struct gpu_profile *p, const struct gpu_model *m,
		    uint64_t batch, bool extrapolate, struct err *err)
{
	uint64_t largest = gpu_profile_largest_batch(p, m);
	struct gpu_cost cost;

	if (batch > largest)
		return err_set(err, -E2BIG,
			       "out of GPU memory: a batch of %" PRIu64
			       " of %s does not fit %s; the largest that fits "
			       "is %" PRIu64,
			       batch, m->name, p->name, largest);
	gpu_profile_cost(p, m, batch, &cost);
	if (cost.origin == GPU_EXTRAPOLATED && !extrapolate)
		return err_set(err, -ERANGE,
			       "a batch of %" PRIu64 " of %s was not measured "
			       "on %s (measured: up to %" PRIu64
			       "); --extrapolate continues the table",
			       batch, m->name, p->name, m->last_batch);
	return 0;
}
