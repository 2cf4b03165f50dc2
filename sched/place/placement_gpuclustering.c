/* SPDX-License-Identifier: MIT */
/*
 * Jobs that ask for the same GPUs, a share or so many, stand together. Source:
 * Weng et al., "MLaaS in the wild", NSDI 2022; the bands of scores are those of
 * the simulator of Weng et al., "Beware of Fragmentation", USENIX ATC 2023.
 */
#include <math.h>

#include "common/util.h"
#include "sched/core/placement.h"

enum { OTHER = 0, IDLE = 25, MIXED = 50, SAME = 75, BAND = 25 };

static int band(const struct sched_node *n, uint32_t class)
{
	bool others = false;

	for (uint32_t k = PART_SHARE; k < PART_CLASSES; k++)
		others = others || (k != class && n->held[k]);
	if (n->held[class])
		return others ? MIXED : SAME;
	return others ? OTHER : IDLE;
}

static void gpuclustering_score(struct placement *p, const struct cluster *c,
				const struct sched_job *job, uint32_t node,
				struct fit *ret)
{
	const struct sched_node *n = &c->nodes[node];
	uint32_t class = part_class(job->n_gpus, job->gpu_milli);
	/* of the largest node: 8 GPUs; what a smaller one lacks is used */
	double used = 1 - MIN(node_gpu_free(n), 8e3) / 8e3;

	(void)p;
	ret->score = job->n_gpus ? floor(band(n, class) + BAND * used) : 0;
	ret->gpus = placement_tightest(n, job->gpu_milli, job->n_gpus);
}

const struct placement_ops placement_gpuclustering = {
	.plugin = { .name = "gpuclustering",
		    .summary = "beside jobs with the same number or share of "
			       "GPUs" },
	.repeats = true,
	.score = gpuclustering_score,
};
