/* SPDX-License-Identifier: MIT */
/*
 * The job's GPUs on the fullest node that has them, with CPU and memory in
 * proportion to GPUs where the job asks for none. Source: Mohan et al.,
 * "Synergy", OSDI 2022, section 2: what cluster schedulers do.
 */
#include "sched/core/placement.h"

const struct placement_ops placement_proportional = {
	.plugin = { .name = "proportional",
		    .summary = "packed; CPU and memory as requested, else in "
			       "proportion to GPUs" },
};
