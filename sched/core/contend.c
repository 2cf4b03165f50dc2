/* SPDX-License-Identifier: MIT */
#include "sched/core/contend.h"

#include <errno.h>
#include <string.h>

#include "common/util.h"
#include "sched/core/interleave.h"

/* Source: Sun et al., "CoGNN", SC 2022, figure 5: pairs of GAT that need more
 * memory than the GPU has, .08 to .12 of the speed of one after the other. */
#define PAGING 0.1

int contention_init(struct contention *c, const struct cluster *cluster,
		    const struct sched_job *jobs, size_t n_jobs)
{
	bool known = false;

	*c = (struct contention){ .n = cluster->n * CLUSTER_GPUS_MAX };
	for (size_t i = 0; i < n_jobs; i++)
		known = known || jobs[i].gpu_busy > 0 || jobs[i].gpu_memory_mib;
	if (!known)
		return 0;
	c->gpus = calloc(c->n + 1, sizeof(*c->gpus));
	return c->gpus ? 0 : -ENOMEM;
}

void contention_fini(struct contention *c)
{
	free(c->gpus);
	*c = (struct contention){ 0 };
}

static const struct gpu_load *load_of(const struct contention *c,
				      const struct sched_part *p, uint32_t gpu)
{
	return &c->gpus[p->node * (size_t)CLUSTER_GPUS_MAX + gpu];
}

static bool is_over(const struct gpu_load *g, const struct sched_node *n)
{
	return n->gpu_memory_mib && g->memory_mib > n->gpu_memory_mib;
}

static void add_job(struct contention *c, const struct sched_job *job)
{
	for (size_t k = 0; k < job->n_parts; k++) {
		const struct sched_part *p = &job->parts[k];
		struct gpu_load *g =
			&c->gpus[p->node * (size_t)CLUSTER_GPUS_MAX];

		for (uint32_t i = 0; p->gpus >> i; i++)
			if (p->gpus >> i & 1) {
				g[i].busy += job->gpu_busy;
				g[i].memory_mib += job->gpu_memory_mib;
			}
	}
}

void contention_see(struct contention *c, const struct cluster *cluster,
		    const struct sched_job *jobs, const uint32_t *active,
		    size_t n)
{
	if (!c->gpus)
		return;
	memset(c->gpus, 0, c->n * sizeof(*c->gpus));
	c->n_over = 0;
	for (size_t i = 0; i < n; i++)
		if (jobs[active[i]].state == JOB_RUNNING &&
		    !jobs[active[i]].mate)
			add_job(c, &jobs[active[i]]);
	for (size_t i = 0; i < c->n; i++)
		c->n_over += is_over(&c->gpus[i],
				     &cluster->nodes[i / CLUSTER_GPUS_MAX]);
}

/* The rate with those on its GPUs. */
static double rate_beside(const struct contention *c,
			  const struct cluster *cluster,
			  const struct sched_job *job)
{
	double busy = 1;
	bool over = false;

	if (job->mate || !c->gpus)
		return interleave_rate(cluster, job);
	for (size_t k = 0; k < job->n_parts; k++) {
		const struct sched_part *p = &job->parts[k];

		for (uint32_t i = 0; p->gpus >> i; i++) {
			const struct gpu_load *g = load_of(c, p, i);

			if (!(p->gpus >> i & 1))
				continue;
			busy = MAX(busy, g->busy);
			over = over || is_over(g, &cluster->nodes[p->node]);
		}
	}
	/* one whose load is not known is not slowed down by the others' */
	return job_rate(cluster, job, job->parts, job->n_parts) *
	       (over ? PAGING : 1) / (job->gpu_busy > 0 ? busy : 1);
}

double contention_rate(const struct contention *c,
		       const struct cluster *cluster,
		       const struct sched_job *job)
{
	const struct sched_job *group[GROUP_MAX];
	size_t n = job_group(job, group);
	double speed = 1;

	/* those of a group wait for each other */
	for (size_t i = 0; i < n; i++)
		speed = MIN(speed, storage_speed(cluster, group[i]));
	return rate_beside(c, cluster, job) * speed;
}
