/* SPDX-License-Identifier: MIT */
/*
 * The node on which least remains free, CPU and GPU weighed alike. Source: Weng
 * et al., "Beware of Fragmentation", USENIX ATC 2023, section 6; the weights
 * are those of its simulator: the largest node has 128 CPUs and 8 GPUs.
 */
#include <math.h>

#include "sched/core/placement.h"

static void bestfit_score(struct placement *p, const struct cluster *c,
			  const struct sched_job *job, uint32_t node,
			  struct fit *ret)
{
	const struct sched_node *n = &c->nodes[node];
	double cpu = (double)n->cpu_free - job->cpu_milli;
	double gpu = (double)node_gpu_free(n) - (double)job_gpu_milli(job);

	(void)p;
	ret->score = floor(100 * (1 - .5 * cpu / 128e3 - .5 * gpu / 8e3));
	ret->gpus = placement_tightest(n, job->gpu_milli, job->n_gpus);
}

const struct placement_ops placement_bestfit = {
	.plugin = { .name = "bestfit",
		    .summary = "where least CPU and GPU remains" },
	.repeats = true,
	.score = bestfit_score,
};
