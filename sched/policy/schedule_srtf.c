/* SPDX-License-Identifier: MIT */
/* Shortest remaining time first. Long jobs may starve. */
#include "sched/core/schedule.h"

const struct schedule_ops schedule_srtf = {
	.plugin = { .name = "srtf",
		    .summary = "shortest remaining time first, preemptive" },
	.preempts = true,
	.key = job_left,
	.key_motion = KEY_FALLS,
};
