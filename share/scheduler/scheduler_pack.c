/* SPDX-License-Identifier: MIT */
/* As much concurrency as memory allows: every lane runs. */
#include "share/scheduler/scheduler.h"

static int order(const struct scheduler_job *a, const struct scheduler_job *b)
{
	return SCHEDULER_COMPARE(a->ready_ns, b->ready_ns);
}

const struct scheduler_ops scheduler_pack = {
	.plugin = { .name = "pack",
		    .summary = "all lanes concurrently; within a lane, first "
			       "ready first" },
	.concurrent = true,
	.order = order,
};
