/* SPDX-License-Identifier: MIT */
/*
 * Least attained service first: needs no knowledge of how long a job is.
 * Source: Gu et al., "Tiresias", NSDI 2019, section 3; continuous, without
 * its queues.
 */
#include "sched/core/schedule.h"

const struct schedule_ops schedule_las = {
	.plugin = { .name = "las",
		    .summary = "least attained GPU time first, preemptive" },
	.preempts = true,
	.key = job_attained,
	.key_motion = KEY_RESTS,
};
