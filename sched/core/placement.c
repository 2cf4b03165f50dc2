/* SPDX-License-Identifier: MIT */
/*
 * Two ways to find a place. With a score every node is looked at, and the
 * best one taken; scores of a node that has not changed are remembered by the
 * shape of the job, because a workload has few shapes and a decision changes
 * few nodes. Without, the job is packed: nodes are taken by the fewest free
 * GPUs.
 */
#include "sched/core/placement.h"

#include <errno.h>
#include <math.h>

#include "common/util.h"

/* arbitrary: 768 MiB of memory; beyond it scores are computed each time */
enum { MEMO_MAX = 32 << 20 };

struct score_memo {
	struct fit fit;
	uint32_t changes; /* of the node */
	bool known, fits;
};

int placement_init(struct placement *p, const struct placement_ops *ops,
		   const void *options, uint64_t seed, const struct cluster *c,
		   const struct sched_job *jobs, size_t n_jobs)
{
	size_t shapes = 0;

	*p = (struct placement){ .ops = ops,
				 .options = options ? options
						    : ops->plugin.defaults,
				 .n_nodes = c->n,
				 .rng = rng_stream(seed, "placement", 0) };
	for (size_t i = 0; i < n_jobs; i++)
		shapes = MAX(shapes, (size_t)jobs[i].shape + 1);
	if (ops->plugin.state_size) {
		p->state = calloc(1, ops->plugin.state_size);
		if (!p->state)
			return -ENOMEM;
	}
	if (ops->repeats && shapes && shapes <= MEMO_MAX / (c->n + 1)) {
		p->n_shapes = shapes;
		p->memo = calloc(shapes * c->n + 1, sizeof(*p->memo));
		if (!p->memo)
			return -ENOMEM;
	}
	return ops->begin ? ops->begin(p, jobs, n_jobs) : 0;
}

void placement_fini(struct placement *p)
{
	if (p->ops && p->ops->end && p->state)
		p->ops->end(p);
	free(p->state);
	free(p->memo);
	*p = (struct placement){ 0 };
}

struct demand placement_share(const struct sched_node *node)
{
	double gpus = node->n_gpus;

	return gpus == 0 ? (struct demand){ 0 }
			 : (struct demand){ node->cpu_milli / gpus,
					    (double)node->memory_mib / gpus };
}

struct demand placement_demand(const struct sched_node *node,
			       const struct sched_job *job)
{
	double gpus = job->n_gpus ? (double)job_gpu_milli(job) / GPU_MILLI : 1;

	if (!job->cpu_milli && !job->memory_mib)
		return placement_share(node);
	return (struct demand){ job->cpu_milli / gpus,
				(double)job->memory_mib / gpus };
}

struct sched_part placement_part(uint32_t node, const struct sched_job *job,
				 uint32_t n_gpus, struct demand d)
{
	double gpus = job->n_gpus ? n_gpus * job->gpu_milli / (double)GPU_MILLI
				  : 1;

	/* rounded down, so that shares of a node never exceed it; a little
	 * more, so that whole numbers stay what they are */
	return (struct sched_part){
		.node = node,
		.gpu_milli = job->n_gpus ? job->gpu_milli : 0,
		.cpu_milli = (uint32_t)(d.cpu_milli * gpus + 1e-6),
		.memory_mib = (uint64_t)(d.memory_mib * gpus + 1e-6),
	};
}

bool placement_fits(const struct cluster *c, const struct sched_job *job,
		    const struct sched_part *part, uint32_t n_gpus)
{
	const struct sched_node *n = &c->nodes[part->node];

	return part->cpu_milli <= n->cpu_free &&
	       part->memory_mib <= n->memory_free && job_allows(job, n) &&
	       (!n_gpus || node_gpus(n, part->gpu_milli) >= n_gpus);
}

uint32_t placement_tightest(const struct sched_node *n, uint32_t milli,
			    uint32_t gpus)
{
	uint32_t mask = 0;

	while (gpus--) {
		int best = -1;

		for (int g = 0; g < n->n_gpus; g++)
			if (!(mask >> g & 1) && n->gpu_free[g] >= milli &&
			    (best < 0 || n->gpu_free[g] < n->gpu_free[best]))
				best = g;
		if (best < 0)
			return 0;
		mask |= 1u << best;
	}
	return mask;
}

static struct demand demand_of(const struct placement *p,
			       const struct sched_node *node,
			       const struct sched_job *job)
{
	return p->ops->demand ? p->ops->demand(p, node, job)
			      : placement_demand(node, job);
}

/* --- by score ------------------------------------------------------------ */

static bool look(struct placement *p, const struct cluster *c,
		 const struct sched_job *job, uint32_t node, struct fit *ret)
{
	struct sched_part part = placement_part(
		node, job, job->n_gpus, demand_of(p, &c->nodes[node], job));

	if (!placement_fits(c, job, &part, job->n_gpus))
		return false;
	p->ops->score(p, c, job, node, ret);
	return true;
}

static bool remembered(struct placement *p, const struct cluster *c,
		       const struct sched_job *job, uint32_t node,
		       struct fit *ret)
{
	struct score_memo *m;

	if (!p->memo)
		return look(p, c, job, node, ret);
	m = &p->memo[job->shape * p->n_nodes + node];
	if (!m->known || m->changes != c->nodes[node].changes) {
		m->known = true;
		m->changes = c->nodes[node].changes;
		m->fits = look(p, c, job, node, &m->fit);
	}
	*ret = m->fit;
	return m->fits;
}

static size_t by_score(struct placement *p, const struct cluster *c,
		       const struct sched_job *job, struct sched_part *ret)
{
	struct fit best = { .score = -INFINITY }, f = { 0 };
	int64_t at = -1;

	for (uint32_t i = 0; i < c->n; i++)
		if (remembered(p, c, job, i, &f) && f.score > best.score) {
			best = f;
			at = i;
		}
	if (at < 0)
		return 0;
	*ret = placement_part((uint32_t)at, job, job->n_gpus,
			      demand_of(p, &c->nodes[at], job));
	ret->gpus = best.gpus;
	return 1;
}

/* --- packed -------------------------------------------------------------- */

/* The fewest free GPUs of all nodes that fit. */
static size_t packed(struct placement *p, const struct cluster *c,
		     const struct sched_job *job, struct sched_part *ret)
{
	uint32_t fewest = UINT32_MAX;

	/* none has fewer than it needs */
	for (uint32_t i = 0; i < c->n && fewest > job->n_gpus; i++) {
		const struct sched_node *n = &c->nodes[i];
		uint32_t free = node_gpus(n, job->n_gpus ? job->gpu_milli : 1);
		struct sched_part part;

		if (free < job->n_gpus || free >= fewest)
			continue;
		part = placement_part(i, job, job->n_gpus,
				      demand_of(p, n, job));
		if (!placement_fits(c, job, &part, job->n_gpus))
			continue;
		fewest = free;
		*ret = part;
		ret->gpus = placement_tightest(n, job->gpu_milli, job->n_gpus);
	}
	return fewest < UINT32_MAX;
}

/* As many GPUs of the node as fit, and are still needed; 0: no more than
 * `least`. */
static uint32_t most(struct placement *p, const struct cluster *c,
		     const struct sched_job *job, uint32_t node, uint32_t need,
		     uint32_t least, struct sched_part *ret)
{
	uint32_t n = MIN(need, node_gpus(&c->nodes[node], job->gpu_milli));
	struct demand d;

	if (n <= least)
		return 0;
	d = demand_of(p, &c->nodes[node], job);
	for (; n > least; n--) {
		*ret = placement_part(node, job, n, d);
		if (placement_fits(c, job, ret, n))
			break;
	}
	return n > least ? n : 0;
}

/* Over several nodes, the one that has room for most of it first. */
static size_t split(struct placement *p, const struct cluster *c,
		    const struct sched_job *job, struct sched_part *ret)
{
	uint32_t need = job->n_gpus;
	size_t n = 0;

	while (need) {
		uint32_t best = 0;

		for (uint32_t i = 0; i < c->n && best < need; i++) {
			struct sched_part part;
			uint32_t gpus;
			bool used = false;

			for (size_t k = 0; k < n; k++)
				used = used || ret[k].node == i;
			gpus = used ? 0 : most(p, c, job, i, need, best, &part);
			if (!gpus)
				continue;
			best = gpus;
			part.gpus = placement_tightest(&c->nodes[i],
						       job->gpu_milli, gpus);
			ret[n] = part;
		}
		if (!best)
			return 0;
		need -= best;
		n++;
	}
	return n;
}

size_t placement_place(struct placement *p, const struct cluster *c,
		       const struct sched_job *job, struct sched_part *ret)
{
	size_t n;

	if (job_gpu_milli(job) > c->free.gpu_milli)
		return 0;
	if (p->ops->score && job->n_gpus <= c->gpus_max)
		return by_score(p, c, job, ret);
	n = packed(p, c, job, ret);
	return n || job->n_gpus < 2 ? n : split(p, c, job, ret);
}
