/* SPDX-License-Identifier: MIT */
/* Shortest remaining time first, by the announced length of the job. */
#include "share/scheduler/scheduler.h"

static int order(const struct scheduler_job *a, const struct scheduler_job *b)
{
	return SCHEDULER_COMPARE(a->remaining_ns, b->remaining_ns);
}

const struct scheduler_ops scheduler_srtf = {
	.plugin = { .name = "srtf",
		    .summary = "shortest remaining time first, decided at each "
			       "iteration" },
	.order = order,
	.queue_order = order,
};
