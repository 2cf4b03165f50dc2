/* SPDX-License-Identifier: MIT */
/* As much at once as the memory allows: every lane runs. */
#include "share/scheduler/scheduler.h"

static int order(const struct scheduler_job *a, const struct scheduler_job *b)
{
	return SCHEDULER_COMPARE(a->ready_ns, b->ready_ns);
}

const struct scheduler_ops scheduler_pack = {
	.plugin = { .name = "pack",
		    .summary = "all lanes at once; within a lane, who was "
			       "ready first" },
	.concurrent = true,
	.order = order,
};
