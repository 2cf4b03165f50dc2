/* SPDX-License-Identifier: MIT */
/*
 * Equal GPU time: whoever got least since the last job was admitted. All
 * begin anew then, so that a newcomer does not run alone until he has made up
 * for what the others got before him. Source: Salus, src/execution/scheduler/
 * impl/fair.cpp.
 */
#include "share/scheduler/scheduler.h"

static int order(const struct scheduler_job *a, const struct scheduler_job *b)
{
	int c = SCHEDULER_COMPARE(a->key, b->key);

	return c ? c : SCHEDULER_COMPARE(a->last_start, b->last_start);
}

static void admitted(struct scheduler_job *const jobs[], size_t n)
{
	for (size_t i = 0; i < n; i++)
		jobs[i]->key = 0;
}

static void ran(struct scheduler_job *job, double gpu_ns)
{
	job->key += gpu_ns;
}

const struct scheduler_ops scheduler_fair = {
	.plugin = { .name = "fair", .summary = "equal GPU time for all jobs" },
	.order = order,
	.admitted = admitted,
	.ran = ran,
};
