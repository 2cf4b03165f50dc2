/* SPDX-License-Identifier: MIT */
/*
 * Each job gets all the CPU and memory that it can use; where they are short,
 * jobs fall back to their GPUs' share, and so none is slower than with that
 * share and no GPU is idle for want of CPUs. Source: Mohan et al., "Synergy",
 * OSDI 2022, section 5.2, Synergy-TUNE.
 *
 *	1 the fullest node that has all that the job can use
 *	2 else the same with no more than the share of its GPUs
 *	3 else a node by GPUs alone, where jobs that have more than their share
 *	  go back to it, those with the most CPUs first, until there is room
 */
#include <string.h>

#include "common/util.h"
#include "sched/place/synergy.h"

/* How much `demand` is to give. */
enum amount { ALL, FAIR, NOTHING };

struct tune {
	enum amount amount;
	struct sched_part *parts; /* of one job */
	size_t parts_allocated;
	struct victim *victims;
	size_t victims_allocated;
	/* the plan's parts on each node: the last one, counted from 1, and for
	 * each part whose it is, and the one before it there */
	size_t *last;
	struct on_node *on_node;
	size_t last_allocated, on_node_allocated;
};

struct on_node {
	size_t action, before;
};

/* A job that has more than its share on a node. */
struct victim {
	size_t action, n_parts;
	double cpu, memory; /* per GPU */
};

static struct demand amount_of(const struct placement *p,
			       const struct sched_node *node,
			       const struct sched_job *job, enum amount amount)
{
	const struct synergy_options *o = p->options;
	struct demand d;

	if (amount == NOTHING)
		return (struct demand){ 0 };
	d = synergy_demand(node, job, o->profile);
	return amount == ALL ? d : synergy_fair(node, d);
}

static struct demand tune_demand(const struct placement *p,
				 const struct sched_node *node,
				 const struct sched_job *job)
{
	const struct tune *t = p->state;

	return amount_of(p, node, job, t->amount);
}

/* --- step 3: take back ---------------------------------------------------- */

/* Fewest nodes first, then most CPUs and most memory. */
static int compare_victims(const void *a, const void *b)
{
	const struct victim *x = a, *y = b;

	if (x->n_parts != y->n_parts)
		return x->n_parts < y->n_parts ? -1 : 1;
	if (x->cpu != y->cpu)
		return x->cpu > y->cpu ? -1 : 1;
	if (x->memory != y->memory)
		return x->memory > y->memory ? -1 : 1;
	return x->action < y->action ? -1 : x->action > y->action;
}

/* The last action of the plan has its parts. */
static int see_parts(struct tune *t, const struct sched_plan *plan)
{
	const struct action *a = &plan->actions[plan->n - 1];
	int r = util_reserve(&t->on_node, &t->on_node_allocated, plan->n_parts,
			     sizeof(*t->on_node));

	for (size_t k = a->first; r == 0 && k < a->first + a->n_parts; k++) {
		size_t *last = &t->last[plan->parts[k].node];

		t->on_node[k] = (struct on_node){ plan->n - 1, *last };
		*last = k + 1;
	}
	return r;
}

static int find_victims(struct tune *t, const struct sched_plan *plan,
			uint32_t node, size_t *ret_n)
{
	size_t n = 0;
	int r;

	for (size_t k = t->last[node]; k; k = t->on_node[k - 1].before) {
		const struct sched_part *p = &plan->parts[k - 1];
		size_t action = t->on_node[k - 1].action;
		double gpus = part_gpus(p);

		if (!p->gpus)
			continue;
		r = util_reserve(&t->victims, &t->victims_allocated, n + 1,
				 sizeof(*t->victims));
		if (r < 0)
			return r;
		t->victims[n++] =
			(struct victim){ action, plan->actions[action].n_parts,
					 p->cpu_milli / gpus,
					 (double)p->memory_mib / gpus };
	}
	if (n)
		qsort(t->victims, n, sizeof(*t->victims), compare_victims);
	*ret_n = n;
	return 0;
}

/* Back to the share of its GPUs, on all its nodes. */
static void make_fair(struct cluster *c, const struct action *a,
		      struct sched_plan *plan, const struct sched_job *job)
{
	for (size_t k = 0; k < a->n_parts; k++) {
		struct sched_part *p = &plan->parts[a->first + k], fair;
		const struct sched_node *n = &c->nodes[p->node];

		fair = placement_part(p->node, job, part_gpus(p),
				      placement_share(n));
		cluster_give(c, p);
		p->cpu_milli = MIN(p->cpu_milli, fair.cpu_milli);
		p->memory_mib = MIN(p->memory_mib, fair.memory_mib);
		cluster_take(c, p);
	}
}

/* Make room for the part on its node, if there are jobs to take it from. */
static int make_room(struct placement *p, struct cluster *c,
		     const struct sched_job *jobs,
		     const struct sched_part *part, struct sched_plan *plan)
{
	struct tune *t = p->state;
	const struct sched_node *node = &c->nodes[part->node];
	struct demand share = placement_share(node);
	size_t n;
	int r = find_victims(t, plan, part->node, &n);

	for (size_t i = 0; r == 0 && i < n; i++) {
		const struct victim *v = &t->victims[i];
		const struct action *a = &plan->actions[v->action];
		bool cpu = part->cpu_milli > node->cpu_free;
		bool memory = part->memory_mib > node->memory_free;

		if (!cpu && !memory)
			break;
		/* a whole unit, since parts are rounded down to them */
		if ((cpu && v->cpu >= share.cpu_milli + 1) ||
		    (memory && v->memory >= share.memory_mib + 1))
			make_fair(c, a, plan, &jobs[a->job]);
	}
	return r;
}

/* It has no place where there is no room. */
static int squeeze_in(struct placement *p, struct cluster *c,
		      const struct sched_job *jobs, uint32_t which,
		      struct sched_plan *plan)
{
	struct tune *t = p->state;
	const struct sched_job *job = &jobs[which];
	size_t n, k = 0;
	int r = 0;

	t->amount = NOTHING;
	n = placement_place(p, c, job, t->parts);
	for (; r == 0 && k < n; k++) {
		struct sched_part *part = &t->parts[k];
		const struct sched_node *node = &c->nodes[part->node];
		uint32_t gpus = part->gpus;

		*part = placement_part(part->node, job, part_gpus(part),
				       amount_of(p, node, job, FAIR));
		part->gpus = gpus;
		r = make_room(p, c, jobs, part, plan);
		if (r == 0 && !cluster_has(c, part))
			break;
		if (r == 0)
			cluster_take(c, part);
	}
	if (r == 0 && n && k == n) {
		r = plan_add(plan, ACTION_START, which, t->parts, n);
		return r < 0 ? r : see_parts(t, plan);
	}
	while (k--)
		cluster_give(c, &t->parts[k]);
	return r;
}

/* --- all jobs ------------------------------------------------------------- */

static int place_one(struct placement *p, struct cluster *c,
		     const struct sched_job *jobs, uint32_t which,
		     struct sched_plan *plan)
{
	struct tune *t = p->state;
	size_t n = 0;
	int r = util_reserve(&t->parts, &t->parts_allocated,
			     placement_parts(&jobs[which]), sizeof(*t->parts));

	for (enum amount a = ALL; r == 0 && !n && a <= FAIR; a++) {
		t->amount = a;
		n = placement_place(p, c, &jobs[which], t->parts);
	}
	if (r < 0 || !n)
		return r < 0 ? r : squeeze_in(p, c, jobs, which, plan);
	r = plan_start(plan, c, which, t->parts, n);
	return r < 0 ? r : see_parts(t, plan);
}

static int tune_place_all(struct placement *p, struct cluster *c,
			  const struct sched_job *jobs, const uint32_t *which,
			  size_t n, struct sched_plan *ret)
{
	struct tune *t = p->state;
	int r = util_reserve_anew(&t->last, &t->last_allocated, c->n,
				  sizeof(*t->last));

	if (r == 0)
		memset(t->last, 0, c->n * sizeof(*t->last));
	for (size_t i = 0; r == 0 && i < n; i++)
		r = place_one(p, c, jobs, which[i], ret);
	return r;
}

static void tune_end(struct placement *p)
{
	struct tune *t = p->state;

	free(t->parts);
	free(t->victims);
	free(t->last);
	free(t->on_node);
}

const struct placement_ops placement_tune = {
	.plugin = { .name = "tune",
		    .summary = "Synergy-TUNE: the CPU and memory that a job "
			       "can use, never less than its share",
		    .state_size = sizeof(struct tune),
		    .options = synergy_fields,
		    .defaults = &synergy_defaults,
		    .options_size = sizeof(struct synergy_options) },
	.anew = true,
	.demand = tune_demand,
	.place_all = tune_place_all,
	.end = tune_end,
};
