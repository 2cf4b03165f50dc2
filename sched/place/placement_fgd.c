/* SPDX-License-Identifier: MIT */
/*
 * Fragmentation gradient descent: the node and GPU on which fragmentation grows
 * least. Source: Weng et al., "Beware of Fragmentation", USENIX ATC 2023,
 * section 4, and its simulator, pkg/simulator/plugin: a score is a whole number
 * from 0 to 100.
 */
#include <math.h>

#include "sched/core/frag.h"
#include "sched/core/placement.h"

static int fgd_begin(struct placement *p, const struct sched_job *jobs,
		     size_t n)
{
	return frag_init(p->state, jobs, n);
}

static void fgd_end(struct placement *p)
{
	frag_fini(p->state);
}

static double score_of(const struct placement *p,
		       const struct sched_node *before, double frag,
		       const struct sched_job *job, uint32_t gpus)
{
	struct sched_node after = *before;

	for (uint32_t g = 0; g < after.n_gpus; g++)
		if (gpus >> g & 1)
			after.gpu_free[g] -= (uint16_t)job->gpu_milli;
	after.cpu_free -= job->cpu_milli;
	frag -= frag_node(p->state, &after);
	return floor(100 / (1 + exp(-frag / GPU_MILLI)));
}

static void fgd_score(struct placement *p, const struct cluster *c,
		      const struct sched_job *job, uint32_t node,
		      struct fit *ret)
{
	const struct sched_node *n = &c->nodes[node];
	double frag = frag_node(p->state, n);

	*ret = (struct fit){ .score = -1 };
	if (!job->n_gpus || job->gpu_milli == GPU_MILLI) {
		ret->gpus = placement_tightest(n, job->gpu_milli, job->n_gpus);
		ret->score = score_of(p, n, frag, job, ret->gpus);
		return;
	}
	for (uint32_t g = 0; g < n->n_gpus; g++) {
		double score;
		bool like = false;

		/* GPUs with as much left score the same */
		for (uint32_t k = 0; k < g; k++)
			like = like || n->gpu_free[k] == n->gpu_free[g];
		if (like || n->gpu_free[g] < job->gpu_milli)
			continue;
		score = score_of(p, n, frag, job, 1u << g);
		if (score > ret->score)
			*ret = (struct fit){ score, 1u << g };
	}
}

const struct placement_ops placement_fgd = {
	.plugin = { .name = "fgd",
		    .summary = "fragmentation gradient descent: where typical "
			       "jobs lose least",
		    .state_size = sizeof(struct frag) },
	.repeats = true,
	.score = fgd_score,
	.begin = fgd_begin,
	.end = fgd_end,
};
