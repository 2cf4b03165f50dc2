/* SPDX-License-Identifier: MIT */
/*
 * gpemu-sched fill: tasks arrive and never leave, until they ask for more GPUs
 * than the cluster has. A task that finds no place is turned away. Source of
 * the protocol: Weng et al., "Beware of Fragmentation", USENIX ATC 2023,
 * section 6: tasks of a trace in random order, some drawn again or left out so
 * that they ask for a given part of the cluster.
 */
#include "sched/fill.h"

#include <errno.h>
#include <string.h>

#include "common/tick.h"
#include "common/util.h"
#include "sched/core/frag.h"

/* Task numbers in the order of arrival: a permutation, and beyond it draws. */
static int make_order(const struct workload *w, double milli, uint64_t seed,
		      uint32_t **ret, size_t *ret_n)
{
	struct rng rng = rng_stream(seed, "fill", 0);
	size_t n = w->n, allocated = 0;
	double sum = 0;
	int r = util_reserve(ret, &allocated, n, sizeof(**ret));

	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++)
		(*ret)[i] = (uint32_t)i;
	rng_shuffle_u32(&rng, *ret, n);
	for (size_t i = 0; i < n; i++) {
		sum += (double)job_gpu_milli(&w->jobs[(*ret)[i]]);
		if (sum >= milli)
			n = i + 1;
	}
	while (sum < milli) {
		uint32_t again = (uint32_t)rng_below(&rng, w->n);

		r = util_reserve(ret, &allocated, n + 1, sizeof(**ret));
		if (r < 0)
			return r;
		(*ret)[n++] = again;
		sum += (double)job_gpu_milli(&w->jobs[again]);
	}
	*ret_n = n;
	return 0;
}

/*
 * Ties go to the first node, so that the order of nodes counts: with that of
 * the published list tasks without GPU fill the CPUs of its small nodes first.
 * Here the order is drawn with each seed. The authors' simulator does the same:
 * it takes the least name, and puts a number drawn at random before each
 * (syncClusterResourceList in pkg/simulator/simulator.go).
 */
static void shuffle_nodes(struct cluster *c, uint64_t seed)
{
	struct rng rng = rng_stream(seed, "fill.nodes", 0);

	for (size_t i = c->n; i > 1; i--) {
		size_t k = rng_below(&rng, i);
		struct node other = c->nodes[k];

		c->nodes[k] = c->nodes[i - 1];
		c->nodes[i - 1] = other;
	}
}

static void sample(const struct cluster *c, const struct frag *f,
		   struct fill_point *p)
{
	double whole = (double)c->whole.gpu_milli;
	double free = (double)c->free.gpu_milli;

	p->allocated = 1 - free / whole;
	p->free_gpus = free / GPU_MILLI;
	p->frag = free > 0 ? frag_cluster(f, c) / free : 0;
	p->reached = true;
}

struct fill_run {
	const struct fill *fill;
	struct cluster cluster;
	struct placement placement;
	struct frag frag;
	uint32_t *order;
	size_t n;
	struct part *parts;
};

static int loop(struct fill_run *r, struct fill_result *ret, struct err *err)
{
	const struct workload *w = r->fill->workload;
	double whole = (double)r->cluster.whole.gpu_milli, arrived = 0;
	size_t point = 0;

	for (size_t i = 0; i < r->n; i++) {
		const struct job *job = &w->jobs[r->order[i]];
		uint64_t from = tick_wall();
		size_t n = placement_place(&r->placement, &r->cluster, job,
					   r->parts);

		hist_add(&ret->decisions, tick_wall() - from);
		for (size_t k = 0; k < n; k++) {
			if (!cluster_has(&r->cluster, &r->parts[k]))
				return err_set(err, -EINVAL,
					       "the placement gives task %s "
					       "what is not free",
					       job->name);
			cluster_take(&r->cluster, &r->parts[k]);
		}
		ret->n_arrived++;
		ret->n_placed += n > 0;
		arrived += (double)job_gpu_milli(job);
		for (; point < r->fill->n_points &&
		       arrived >= whole * r->fill->points[point] - .5;
		     point++)
			sample(&r->cluster, &r->frag, &ret->points[point]);
		if (atomic_load_explicit(r->fill->stop, memory_order_relaxed))
			return err_set(err, -EINTR, "interrupted");
	}
	return 0;
}

int fill_run(const struct fill *fill, const struct placement_ops *ops,
	     const void *options, uint64_t seed, struct fill_result *ret,
	     struct err *err)
{
	struct fill_run r = { .fill = fill };
	const struct workload *w = fill->workload;
	size_t parts = 1;
	int e = cluster_copy(fill->cluster, &r.cluster);

	memset(ret, 0, sizeof(*ret));
	if (e == 0)
		shuffle_nodes(&r.cluster, seed);
	for (size_t i = 0; i < w->n; i++)
		parts = MAX(parts, placement_parts(&w->jobs[i]));
	r.parts = calloc(parts, sizeof(*r.parts));
	if (e == 0 && !r.parts)
		e = -ENOMEM;
	if (e == 0)
		e = make_order(w,
			       (double)r.cluster.whole.gpu_milli *
				       fill->points[fill->n_points - 1],
			       seed, &r.order, &r.n);
	if (e == 0)
		e = frag_init(&r.frag, w->jobs, w->n);
	if (e == 0)
		e = placement_init(&r.placement, ops, options, seed, &r.cluster,
				   w->jobs, w->n);
	if (e == 0)
		e = loop(&r, ret, err);
	placement_fini(&r.placement);
	frag_fini(&r.frag);
	cluster_fini(&r.cluster);
	free(r.order);
	free(r.parts);
	return e < 0 ? err_set(err, e, "%s", strerror(-e)) : 0;
}
