/* SPDX-License-Identifier: MIT */
/* The job that has not run for the longest time. */
#include "share/scheduler/scheduler.h"

static int order(const struct scheduler_job *a, const struct scheduler_job *b)
{
	return SCHEDULER_COMPARE(a->last_start, b->last_start);
}

const struct scheduler_ops scheduler_rr = {
	.plugin = { .name = "rr",
		    .summary =
			    "round robin: one iteration of each job in turn" },
	.order = order,
};
