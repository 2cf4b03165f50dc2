/* SPDX-License-Identifier: MIT */
#include "sched/policy/groups.h"

#include <errno.h>
#include <string.h>

#include "common/util.h"

/* The jobs that wait, in the order in which groups are filled. */
struct line {
	struct queued *jobs;
	size_t n;
	bool *started;
};

static bool is_grouped(const struct sched_job *job)
{
	return job->n_gpus == 1 && job->gpu_milli == GPU_MILLI &&
	       job->gpu_busy > 0;
}

/* From ascending order: the first, the last, the second, ... ; after an odd
 * number of jobs it is the turn of the last. */
static int alternate(struct line *l, uint64_t n_started)
{
	_cleanup_free_ struct queued *sorted =
		malloc((l->n + 1) * sizeof(*sorted));
	size_t low = 0, high = l->n;

	if (!sorted)
		return -ENOMEM;
	memcpy(sorted, l->jobs, l->n * sizeof(*sorted));
	for (size_t i = 0; i < l->n; i++)
		l->jobs[i] = (n_started + i) % 2 ? sorted[--high]
						 : sorted[low++];
	return 0;
}

static int line_up(const struct view *v, const struct sched_groups *g,
		   struct line *l)
{
	l->jobs = malloc((v->n_active + 1) * sizeof(*l->jobs));
	l->started = calloc(v->n_active + 1, sizeof(*l->started));
	if (!l->jobs || !l->started)
		return -ENOMEM;
	for (size_t i = 0; i < v->n_active; i++) {
		const struct sched_job *job = &v->jobs[v->active[i]];
		double key = g->order == GROUPS_ARRIVAL
				     ? 0
				     : (double)job->gpu_memory_mib;

		if (job->state == JOB_WAITING && is_grouped(job))
			l->jobs[l->n++] = (struct queued){ key, v->active[i] };
	}
	qsort(l->jobs, l->n, sizeof(*l->jobs), queued_compare);
	return g->order == GROUPS_BALANCED ? alternate(l, g->n_started) : 0;
}

/* --- a group -------------------------------------------------------------- */

/* Of `n` jobs that share the GPU, each with a like part of it. */
static struct sched_part part_of(const struct view *v,
				 const struct sched_job *job, uint32_t node,
				 uint32_t gpu, size_t n)
{
	struct sched_job as = *job;
	struct sched_part p;

	as.gpu_milli = (uint32_t)(GPU_MILLI / n);
	p = placement_part(node, &as, 1,
			   placement_demand(&v->cluster->nodes[node], &as));
	p.gpus = 1u << gpu;
	return p;
}

/* Fill in which of the line; how many. */
static size_t choose(struct sched_schedule *s, const struct view *v,
		     const struct sched_groups *g, const struct line *l,
		     uint32_t node, uint32_t gpu, size_t *ret)
{
	const struct sched_node *of = &v->cluster->nodes[node];
	uint64_t budget = g->budget_mib ? g->budget_mib : of->gpu_memory_mib;
	uint64_t memory = 0;
	size_t n = 0;

	for (size_t i = 0; i < l->n && n < g->most; i++) {
		const struct sched_job *job = &v->jobs[l->jobs[i].job];
		struct sched_part p = part_of(v, job, node, gpu, g->most);

		if (l->started[i] || !job_allows(job, of) ||
		    !cluster_has(&s->scratch, &p))
			continue;
		memory += job->gpu_memory_mib;
		if (n && budget && memory >= budget)
			break;
		ret[n++] = i;
	}
	return n;
}

static int start_group(struct sched_schedule *s, const struct view *v,
		       struct sched_groups *g, struct line *l, uint32_t node,
		       uint32_t gpu, struct sched_plan *ret)
{
	size_t which[GROUPS_MEMBERS_MAX];
	size_t n = choose(s, v, g, l, node, gpu, which);
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		uint32_t job = l->jobs[which[i]].job;
		struct sched_part p = part_of(v, &v->jobs[job], node, gpu, n);

		/* CPUs that each asks for may be short for all of them */
		if (!cluster_has(&s->scratch, &p))
			continue;
		l->started[which[i]] = true;
		g->n_started++;
		r = plan_start(ret, &s->scratch, job, &p, 1);
	}
	return r;
}

int groups_decide(struct sched_schedule *s, const struct view *v,
		  struct sched_groups *g, struct sched_plan *ret)
{
	struct line l = { 0 };
	int r = line_up(v, g, &l);

	cluster_sync(&s->scratch, v->cluster);
	for (uint32_t i = 0; i < v->cluster->n; i++)
		for (uint32_t k = 0; r == 0 && k < v->cluster->nodes[i].n_gpus;
		     k++)
			if (!s->scratch.nodes[i].down &&
			    s->scratch.nodes[i].gpu_free[k] == GPU_MILLI)
				r = start_group(s, v, g, &l, i, k, ret);
	if (r == 0)
		r = schedule_others(s, v, is_grouped, ret);
	free(l.jobs);
	free(l.started);
	return r;
}

int groups_alone(struct sched_schedule *s, const struct view *v,
		 struct sched_plan *ret)
{
	struct sched_groups g = { .order = GROUPS_ARRIVAL, .most = 1 };

	return groups_decide(s, v, &g, ret);
}
