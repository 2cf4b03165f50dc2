/* SPDX-License-Identifier: MIT */
/*
 * GPUs that are shared already are filled before free ones are opened, and
 * nodes in use before idle ones. Source: Weng et al., "MLaaS in the wild", NSDI
 * 2022; the scores are those of the simulator of Weng et al., "Beware of
 * Fragmentation", USENIX ATC 2023.
 */
#include "common/util.h"
#include "sched/core/placement.h"

static double score_of(const struct sched_node *n, const struct sched_job *job,
		       uint32_t gpus)
{
	uint32_t free = node_gpus(n, GPU_MILLI), opened = 0, percent = 0;

	if (!job->n_gpus)
		return 0;
	if (free == n->n_gpus)
		return MAX(33. - free, free);
	for (uint32_t g = 0; g < n->n_gpus; g++) {
		if (!(gpus >> g & 1))
			continue;
		opened += n->gpu_free[g] == GPU_MILLI;
		percent += n->gpu_free[g] / 10u;
	}
	if (opened)
		return MAX(50. - opened, 33);
	return MAX(100. - percent / 10, 50);
}

static void gpupacking_score(struct placement *p, const struct cluster *c,
			     const struct sched_job *job, uint32_t node,
			     struct fit *ret)
{
	const struct sched_node *n = &c->nodes[node];

	(void)p;
	ret->gpus = placement_tightest(n, job->gpu_milli, job->n_gpus);
	ret->score = score_of(n, job, ret->gpus);
}

const struct placement_ops placement_gpupacking = {
	.plugin = { .name = "gpupacking",
		    .summary = "shared GPUs first, then nodes in use, then "
			       "idle ones" },
	.repeats = true,
	.score = gpupacking_score,
};
