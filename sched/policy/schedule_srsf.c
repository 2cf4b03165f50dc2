/* SPDX-License-Identifier: MIT */
/*
 * Shortest remaining service first: time multiplied by GPUs. Source: Gu et al.,
 * "Tiresias", NSDI 2019, section 3.
 */
#include "sched/core/schedule.h"

static double srsf_key(const struct job *job, uint64_t now_ns)
{
	return job_left(job, now_ns) * (double)job_gpu_milli(job);
}

const struct schedule_ops schedule_srsf = {
	.plugin = { .name = "srsf",
		    .summary = "shortest remaining time x GPUs first, "
			       "preemptive" },
	.preempts = true,
	.key = srsf_key,
	.key_motion = KEY_FALLS,
};
