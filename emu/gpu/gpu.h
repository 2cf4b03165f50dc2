/* SPDX-License-Identifier: MIT */
/*
 * An emulated GPU: a copy stream and a compute stream, each represented by the
 * time until which it is busy. Pure: no clock, no lock, no waiting. The caller
 * passes the time at which a batch is ready and gets the begin and end of its
 * copy and computation, in emulated ns. Times are computed from each other, not
 * from wake-ups, so lateness does not accumulate.
 *
 * Overlapped (the default): copies have a separate stream, as in a PyTorch loop
 * that prefetches with non_blocking copies on a side stream. The device holds
 * two batches, so the copy of a batch overlaps the computation of the previous
 * one,
 *
 *	copy     |--0--|--1--|      |--2--|      |--3--|
 *	compute        |-----0------|-----1------|-----2------|
 *
 * and waits until the batch two before it has been computed. Blocking: one
 * batch on the device; a copy begins when the computation before it ended, as
 * in a loop that copies on the stream it computes on, non_blocking or not.
 *
 * While the compute stream is idle before a step, the step waits first for
 * its batch (data wait), then for the copy (transfer stall); the two add up
 * to the idle time.
 *
 * Host time: a program spends `host_ns` on each step to launch its work, from
 * the begin of its copy on; the device runs what was launched meanwhile. It is
 * hidden behind the computation unless that is shorter. Then the step ends as
 * the last launch does, and the difference is host stall:
 *
 *	host     |----0----||----1----||----2----|
 *	compute     |--0---|    |--1---|    |--2---|
 */
#ifndef GPEMU_EMU_GPU_GPU_H
#define GPEMU_EMU_GPU_GPU_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "common/rng.h"
#include "emu/profile/profile_gpu.h"

enum gpu_transfer { GPU_TRANSFER_OVERLAP, GPU_TRANSFER_BLOCKING };

struct gpu {
	enum gpu_transfer transfer;
	uint64_t compute_end; /* of the last batch submitted */
	uint64_t room_ns;     /* when the device has room for a batch */
	uint64_t host_ns;     /* the host's own time of a step; 0: none */
	uint64_t host_end;    /* of the last step whose copy has begun */
};

struct gpu_step {
	uint64_t copy_start, copy_end;
	uint64_t compute_start, compute_end; /* forward and backward */
	uint64_t data_wait_ns;		     /* idle, waiting for the batch */
	uint64_t transfer_stall_ns; /* idle while the batch was copied */
	uint64_t host_stall_ns;	  /* idle for the host, before compute_start */
	uint64_t prep_ns;	  /* transforms on the device */
	uint64_t barrier_wait_ns; /* for the slower GPUs of a group */
	uint64_t allreduce_ns;	  /* not hidden by the backward pass */
	uint64_t optimizer_ns;	  /* after it; 0: part of backward */
	uint64_t step_end;	  /* the next computation may begin */
};

/* "overlap" or "blocking"; -EINVAL with a text. */
int gpu_transfer_parse(const char *s, enum gpu_transfer *ret, struct err *err);

const char *gpu_transfer_name(enum gpu_transfer transfer);

/* An idle, empty device at emulated time `now`. */
void gpu_init(struct gpu *g, enum gpu_transfer transfer, uint64_t now);

/*
 * A step in parts (emu/gpu/gpus.h has all of it): the copy of a batch, not
 * before the device has room for it; then the computation, after `before_ns` of
 * other work on the compute stream once the batch is there; then the end of the
 * step.
 */
void gpu_copy(struct gpu *g, uint64_t start, uint64_t end,
	      struct gpu_step *ret);
void gpu_compute(struct gpu *g, uint64_t before_ns, uint64_t compute_ns,
		 struct gpu_step *s);
void gpu_end(struct gpu *g, uint64_t end, struct gpu_step *s);

/* Block copies and computations until `until`. */
void gpu_hold(struct gpu *g, uint64_t until);

/* When the device has room for the next batch. */
uint64_t gpu_room(const struct gpu *g);

/*
 * Random factor of the step time: lognormal, mean 1, coefficient of variation
 * `cv` (0: always 1). Source of the shape: arbitrary; step times have a lower
 * bound and a longer upper tail, and at the 0.1 to 3 % of real GPUs it hardly
 * differs from a normal distribution.
 */
double gpu_jitter(struct rng *rng, double cv);

/* GPU memory in use besides the peak of a step. */
struct gpu_beside {
	double prep_mib;       /* transforms on the GPU */
	uint64_t bucket_bytes; /* gradients, flattened to be reduced */
	uint64_t sample_bytes; /* of each waiting sample */
	uint32_t waiting;      /* such batches: the next one, and under
				* DataParallel the other GPUs' parts */
};

/* The memory for a step of `batch` samples. */
uint64_t gpu_waiting_bytes(const struct gpu_beside *b, uint64_t batch);

/* The largest batch that fits besides that; 0: none. */
uint64_t gpu_largest_batch(const struct gpu_profile *p,
			   const struct gpu_model *m,
			   const struct gpu_beside *beside);

/*
 * Check that `batch` samples of the model can be trained on this GPU besides
 * that. -E2BIG with a text that names the largest batch that fits; -ERANGE: it
 * fits but is outside the measured table and `extrapolate` is not set.
 */
int gpu_check_batch(const struct gpu_profile *p, const struct gpu_model *m,
		    const struct gpu_beside *beside, uint64_t batch,
		    bool extrapolate, struct err *err);

#endif
