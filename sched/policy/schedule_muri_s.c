/* SPDX-License-Identifier: MIT */
/* Muri where the remaining time of jobs is known: shortest remaining service
 * first. */
#include "sched/policy/muri.h"

static double muri_s_key(const struct job *job, uint64_t now_ns)
{
	return job_left(job, now_ns) * (double)job_gpu_milli(job);
}

MURI_SCHEDULE(
	muri_s,
	"Muri-S: groups that take turns, shortest remaining time x GPUs first",
	muri_s_key);
