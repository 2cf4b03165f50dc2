/* SPDX-License-Identifier: MIT */
/*
 * The node whose free CPU and GPU are least aligned with the job's: one minus
 * the scalar product of both, over the largest node. Source: Grandl et al.,
 * "Tetris", SIGCOMM 2014, as the simulator of Weng et al., "Beware of
 * Fragmentation", USENIX ATC 2023, has it.
 */
#include <math.h>

#include "sched/core/placement.h"

static void dotprod_score(struct placement *p, const struct cluster *c,
			  const struct sched_job *job, uint32_t node,
			  struct fit *ret)
{
	const struct sched_node *n = &c->nodes[node];
	double cpu = n->cpu_free / 128e3 * (job->cpu_milli / 128e3);
	double gpu =
		node_gpu_free(n) / 8e3 * ((double)job_gpu_milli(job) / 8e3);

	(void)p;
	ret->score = floor(100 * (1 - (cpu + gpu) / 2));
	ret->gpus = placement_tightest(n, job->gpu_milli, job->n_gpus);
}

const struct placement_ops placement_dotprod = {
	.plugin = { .name = "dotprod",
		    .summary = "where free CPU and GPU are least aligned with "
			       "the job's" },
	.repeats = true,
	.score = dotprod_score,
};
