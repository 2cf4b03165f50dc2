/* SPDX-License-Identifier: MIT */
/* Shortest remaining time first, by what the job said that it would run. */
#include "share/scheduler/scheduler.h"

static int order(const struct scheduler_job *a, const struct scheduler_job *b)
{
	return SCHEDULER_COMPARE(a->remaining_ns, b->remaining_ns);
}

const struct scheduler_ops scheduler_srtf = {
	.plugin = { .name = "srtf",
		    .summary = "the job with the least left to do, from "
			       "iteration to iteration" },
	.order = order,
	.queue_order = order,
};
