/* SPDX-License-Identifier: MIT */
/*
 * The GPUs of a node that train one model: their copies share PCIe roots, their
 * steps end together. Pure: no clock, no waiting, like
 * emu/gpu/gpu.h.
 *
 * DistributedDataParallel: each GPU has its own batch. They compute
 * concurrently, gradients are reduced in buckets during the backward pass
 * (emu/gpu/collective.h), and the optimiser steps when the last bucket is
 * reduced:
 *
 *	GPU 0  |copy|----compute----|-barrier-|-all-reduce-|-optimiser-|
 *	GPU 1       |copy|-------compute------|-all-reduce-|-optimiser-|
 *
 * Compute is forward and backward. Nothing overlaps the optimiser, which needs
 * all gradients; every GPU takes as long as the slowest.
 *
 * Barrier wait: from the end of a GPU to the end of the slowest one.
 * All-reduce: the remaining part, not hidden by the backward pass.
 *
 * DataParallel, as in PyTorch: one process divides one batch. It is copied to
 * GPU 0, which scatters the parts and copies the model to the others before
 * they compute; then gradients are reduced on GPU 0, which alone runs the
 * optimiser. The next batch is copied after the step; nothing overlaps:
 *
 *	GPU 0  |copy|scatter, replicate|----compute----|reduce|optimiser|
 *	GPU 1                          |----compute----|reduce|-barrier-|
 *
 *	scatter            (g - 1) parts / rate
 *	replicate, reduce  2 (g - 1) / g * parameters / rate + g * latency,
 *			   of which inference has the first half
 *
 * The outputs that GPU 0 gathers are less than a hundredth of the inputs for
 * image classifiers, and are ignored. All of this counts as all-reduce time.
 *
 * FullyShardedDataParallel is like DistributedDataParallel, but instead of the
 * all-reduce each GPU's computation waits for parameters on their way
 * (below); that time counts as all-reduce time, too.
 *
 * Several steps may accumulate gradients: until the last of them nothing is
 * reduced, and no optimiser steps. Assumption: the GPUs still end each of these
 * steps together.
 *
 * A step with fewer samples than GPUs times the batch is divided evenly: see
 * gpus_part. GPUs without a part wait at the barrier.
 */
#ifndef GPEMU_EMU_GPU_GPUS_H
#define GPEMU_EMU_GPU_GPUS_H

#include <stdint.h>

#include "emu/gpu/collective.h"
#include "emu/gpu/gpu.h"
#include "emu/gpu/link.h"

/*
 * Fully sharded data parallelism: each of p devices keeps a p-th of parameters,
 * gradients and optimiser state. A unit (a layer) is gathered before it is
 * computed, forward and again backward, and its gradients are reduced and
 * scattered after its backward pass:
 *
 *	compute	    |f0|f1|f2|  |b2|b1|b0|
 *	link	|a0|a1|a2|   |a2|a1|a0|r2|r1|r0|
 *
 * a: all-gather, r: reduce-scatter. With `prefetch` n the link may be n units
 * ahead of the computation; with 0 a unit is gathered when the one before it is
 * computed. A gather ahead has precedence over the gradients of the unit before
 * (BACKWARD_PRE). The last unit's parameters stay for its backward pass.
 *
 *	all-gather, reduce-scatter	(p - 1) / p * bytes / rate
 *					+ (p - 1) * latency
 *
 * Sources: Zhao et al., "PyTorch FSDP", PVLDB 2023, sections 3.3 and 4.3;
 * Rajbhandari et al., "ZeRO", SC 2020, section 7 (1.5 times the volume of an
 * all-reduce). Assumptions: units are alike, and devices in step. Pure.
 */

enum { FSDP_UNITS_MAX = 1024 };

struct fsdp {
	uint32_t ranks; /* p; below 2 nothing is sent */
	uint32_t units; /* 1..FSDP_UNITS_MAX */
	uint32_t prefetch;
	uint64_t weight_bytes, gradient_bytes; /* of the whole model */
	double bytes_per_s;
	uint64_t latency_ns;
};

/*
 * The time that a forward and a backward pass take longer because parameters
 * and gradients are on their way. `backward_ns` 0: there is no backward pass.
 */
uint64_t fsdp_exposed_ns(const struct fsdp *f, uint64_t forward_ns,
			 uint64_t backward_ns);

enum { GPUS_MAX = 64 };

enum gpus_parallel { GPUS_DDP, GPUS_DP, GPUS_FSDP };

struct gpus_config {
	uint32_t n; /* 1..GPUS_MAX */
	enum gpus_parallel parallel;
	enum gpu_transfer transfer;
	double slot_bytes_per_s; /* host to a GPU at most; 0: no limit */
	double root_bytes_per_s; /* host to the GPUs of a root; 0: no limit */
	uint32_t gpus_per_root;	 /* consecutive ones; 0: all */
	bool inference;		 /* no gradients */
	struct collective reduce;
	struct fsdp fsdp; /* GPUS_FSDP; reduce.bytes is 0 then */
	uint64_t host_ns; /* as of struct gpu */
};

/* A GPU's part of a step. */
struct gpus_part {
	uint64_t copy_ns, copy_bytes;
	uint64_t part_bytes; /* DataParallel: bytes scattered to it */
	uint64_t prep_ns;    /* transforms on the GPU, before the step */
	uint64_t forward_ns, backward_ns;
	uint64_t optimizer_ns; /* 0: a part of backward */
	uint64_t sharded_ns;   /* GPUS_FSDP: waits for parameters */
	uint64_t warmup_ns;    /* more that a first step takes: host stall */
};

/* Of a GPU's part of a step the copy of `bytes` only; and the times of `n`
 * samples of a model without copy and transforms, 0: nothing. */
struct gpus_part gpus_copy_of(const struct gpu_profile *p,
			      const struct gpu_model *m, uint64_t bytes,
			      bool pinned);
struct gpus_part gpus_compute_of(const struct gpu_profile *p,
				 const struct gpu_model *m, uint32_t n,
				 uint64_t bytes);

/* Computation takes `ns`, a third of it the forward pass: nominal, the cost of
 * a backward pass is about twice that of the forward pass (Kaplan et al.,
 * "Scaling Laws for Neural Language Models", 2020, section 2.1). */
void gpus_set_compute(struct gpus_part *part, double ns);

struct gpus {
	struct gpus_config config;
	/* Of the next step: its gradients are kept, and not reduced. The caller
	 * leaves out the optimiser. */
	bool accumulates;
	struct gpu gpu[GPUS_MAX];
	struct link root[GPUS_MAX];
};

/* "dp", "ddp" or "fsdp"; -EINVAL with a text. */
int gpus_parallel_parse(const char *s, enum gpus_parallel *ret,
			struct err *err);

/* The effective mode: DataParallel with several GPUs never overlaps. */
enum gpu_transfer gpus_transfer(const struct gpus_config *c);

void gpus_init(struct gpus *g, const struct gpus_config *c, uint64_t now);

/* Samples for GPU i if `samples` are divided among all: ceil(samples / n) each,
 * fewer or none for the last, like torch.chunk. */
uint32_t gpus_cut(uint32_t samples, uint32_t n, uint32_t i);

/*
 * The batch of GPU i (DataParallel: of all, i is 0) is ready at `ready` and is
 * copied to it. Fills the copy's part of *ret. Call in order of time, and
 * before gpus_step.
 */
void gpus_copy(struct gpus *g, uint32_t i, uint64_t ready,
	       const struct gpus_part *part, struct gpu_step *ret);

/*
 * Once the first `used` GPUs have their part (DataParallel: GPU 0 has all):
 * the step. Fills in step[0..n), also of those without a part. Returns when it
 * ends.
 */
uint64_t gpus_step(struct gpus *g, uint32_t used, const struct gpus_part *part,
		   struct gpu_step *step);

/*
 * A step whose gradients are reduced with other nodes, in two parts: this
 * node's computation, and, once all nodes have theirs, its end. `used` and
 * `step` as above; not for DataParallel, whose process has one node.
 */
struct gpus_reach {
	/* from when the last GPU has its first gradients to when the last one
	 * has all: the bounds of each GPU's pass */
	struct collective_pass pass;
	uint64_t optimizer_ns; /* of the slowest */
	bool accumulates;      /* see struct gpus */
};
void gpus_compute(struct gpus *g, uint32_t used, const struct gpus_part *part,
		  struct gpu_step *step, struct gpus_reach *ret);
/* `all`: of all nodes; `reduced`: when the gradients are. As gpus_step. */
uint64_t gpus_reduced(struct gpus *g, uint32_t used,
		      const struct gpus_reach *all, uint64_t reduced,
		      struct gpu_step *step);

/* When the model has been copied from the host to all GPUs that need it; one
 * copy takes `ns` without contention. */
uint64_t gpus_load_model(struct gpus *g, uint64_t at, uint64_t ns,
			 uint64_t bytes);

void gpus_hold(struct gpus *g, uint64_t until);

#endif
