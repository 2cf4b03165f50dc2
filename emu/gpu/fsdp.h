/* SPDX-License-Identifier: MIT */
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
#ifndef GPEMU_EMU_GPU_FSDP_H
#define GPEMU_EMU_GPU_FSDP_H

#include <stdint.h>

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

#endif
