/* SPDX-License-Identifier: MIT */
/* Any node that fits, and any of its GPUs that do. */
#include "sched/core/placement.h"

static void random_score(struct placement *p, const struct cluster *c,
			 const struct sched_job *job, uint32_t node,
			 struct fit *ret)
{
	const struct sched_node *n = &c->nodes[node];
	uint32_t left = job->n_gpus, fit = node_gpus(n, job->gpu_milli);

	*ret = (struct fit){ .score = rng_double(&p->rng) };
	/* each one that fits is taken with the probability that is left */
	for (uint32_t g = 0; left && g < n->n_gpus; g++) {
		if (n->gpu_free[g] < job->gpu_milli)
			continue;
		if (rng_below(&p->rng, fit--) < left) {
			ret->gpus |= 1u << g;
			left--;
		}
	}
}

const struct placement_ops placement_random = {
	.plugin = { .name = "random",
		    .summary = "a random node that fits, random GPUs there" },
	.score = random_score,
};
