/* SPDX-License-Identifier: MIT */
/* Muri where the remaining time of jobs is known: shortest remaining service
 * first. */
#include "sched/policy/muri.h"

static double muri_s_key(const struct job *job, uint64_t now_ns)
{
	return job_left(job, now_ns) * (double)job_gpu_milli(job);
}

const struct schedule_ops schedule_muri_s = {
	.plugin = { .name = "muri_s",
		    .summary = "Muri-S: groups that take turns, shortest "
			       "remaining time x GPUs first",
		    .state_size = sizeof(struct muri),
		    .options = muri_fields,
		    .defaults = &muri_defaults,
		    .options_size = sizeof(struct muri_options) },
	.preempts = true,
	.places = true,
	.key = muri_s_key,
	.decide = muri_decide,
	.begin = muri_begin,
	.end = muri_end,
};
