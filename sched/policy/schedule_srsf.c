/* SPDX-License-Identifier: MIT */
/*
 * Shortest remaining service first: time multiplied by GPUs. Source: Gu et al.,
 * "Tiresias", NSDI 2019, section 3.
 */
#include "sched/core/schedule.h"

const struct schedule_ops schedule_srsf = {
	.plugin = { .name = "srsf",
		    .summary = "shortest remaining time x GPUs first, "
			       "preemptive" },
	.preempts = true,
	.key = job_service_left,
	.key_motion = KEY_FALLS,
};
