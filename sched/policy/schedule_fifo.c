/* SPDX-License-Identifier: MIT */
/* First come, first served. */
#include "sched/core/schedule.h"

static double fifo_key(const struct sched_job *job, uint64_t now_ns)
{
	(void)now_ns;
	return (double)job->arrival_ns;
}

const struct schedule_ops schedule_fifo = {
	.plugin = { .name = "fifo",
		    .summary = "first come, first served; a job that does not "
			       "fit holds up the others" },
	.in_order = true,
	.no_starvation = true,
	.key = fifo_key,
	.key_motion = KEY_FALLS,
};
