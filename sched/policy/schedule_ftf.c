/* SPDX-License-Identifier: MIT */
/*
 * Finish-time fairness: a job's time until completion, over that which it would
 * take alone. The job with the highest ratio is served first; since the ratio
 * of a waiting job grows without bound, none starves. Source: Mahajan et al.,
 * "Themis", NSDI 2020, section 3; all jobs have the same share of the cluster,
 * so that it cancels out.
 */
#include "sched/core/schedule.h"

static double ftf_key(const struct sched_job *job, uint64_t now_ns)
{
	double age_ns = (double)(now_ns - job->arrival_ns);

	return -(age_ns + job_left(job, now_ns)) / job->work_ns;
}

const struct schedule_ops schedule_ftf = {
	.plugin = { .name = "ftf",
		    .summary = "finish-time fairness: the most delayed job "
			       "first, preemptive" },
	.preempts = true,
	.no_starvation = true,
	.key = ftf_key,
};
