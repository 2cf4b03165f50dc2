/* SPDX-License-Identifier: MIT */
/*
 * Tiresias: least attained GPU time first, in queues. A job sinks to the next
 * queue when it has attained enough; within a queue, those that run are served
 * first, then those that came first, so that few are preempted. Source: Gu et
 * al., "Tiresias", NSDI 2019, section 3, discretised 2D-LAS; no job is promoted
 * again.
 */
#include "common/units.h"
#include "common/util.h"
#include "sched/core/schedule.h"

/* GPU time at which a job leaves a queue. Source: the simulator of Muri
 * (SIGCOMM 2022), in s. */
static const double limits_ns[] = { 3250. * NS_PER_S, 7200. * NS_PER_S };

static double tiresias_key(const struct sched_job *job, uint64_t now_ns)
{
	double attained_ns = job_attained(job, now_ns), queue = 0;

	for (size_t i = 0; i < ARRAY_SIZE(limits_ns); i++)
		queue += attained_ns >= limits_ns[i];
	return 2 * queue + (job->state != JOB_RUNNING);
}

/* When it sinks: 1 ns later, for what is rounded. */
static uint64_t tiresias_wake(const struct sched_job *job, uint64_t now_ns)
{
	double gpus = (double)job_gpu_milli(job) / GPU_MILLI;
	double attained_ns = job_attained(job, now_ns);

	for (size_t i = 0; gpus > 0 && i < ARRAY_SIZE(limits_ns); i++)
		if (attained_ns < limits_ns[i])
			return now_ns + 1 +
			       (uint64_t)((limits_ns[i] - attained_ns) / gpus);
	return UINT64_MAX;
}

const struct schedule_ops schedule_tiresias = {
	.plugin = { .name = "tiresias",
		    .summary = "least attained GPU time first, in three "
			       "queues, preemptive" },
	.preempts = true,
	.key = tiresias_key,
	.wake = tiresias_wake,
};
