/* SPDX-License-Identifier: MIT */
/*
 * Contract of a placement: it says on which node, on which GPUs, and with how
 * much CPU and memory a job runs. Which job runs is the policy's decision
 * (sched/core/schedule.h). A placement changes nothing but its own state.
 */
#ifndef GPEMU_SCHED_CORE_PLACEMENT_H
#define GPEMU_SCHED_CORE_PLACEMENT_H

#include "common/plugin.h"
#include "common/rng.h"
#include "sched/core/plan.h"

struct placement;

/* CPU and memory for each whole GPU of a job, or for all of a job without. */
struct demand {
	double cpu_milli, memory_mib;
};

/* One way to place a job on a node. */
struct fit {
	double score;  /* the highest is taken, the first node of equal ones */
	uint32_t gpus; /* a bit for each */
};

struct placement_ops {
	struct plugin plugin;
	/* All running jobs are placed anew with each decision. */
	bool anew;
	/* The score depends on the job's demand and on the node alone, and may
	 * be kept until the node changes. */
	bool repeats;
	/*
	 * A job that fits on the node: the best GPUs there, and how good that
	 * is. NULL: the node with the fewest free GPUs that has enough of all,
	 * else as few nodes as possible.
	 */
	void (*score)(struct placement *p, const struct cluster *c,
		      const struct sched_job *job, uint32_t node,
		      struct fit *ret);
	/* With how much CPU and memory. NULL: what the job asks for; where it
	 * asks for none, its GPUs' share of the node. */
	struct demand (*demand)(const struct placement *p,
				const struct sched_node *node,
				const struct sched_job *job);
	/*
	 * Place all `n` jobs, whose GPUs are there, in a cluster that is empty:
	 * an ACTION_START for each that gets something. NULL: one after the
	 * other. -ENOMEM.
	 */
	int (*place_all)(struct placement *p, struct cluster *c,
			 const struct sched_job *jobs, const uint32_t *which,
			 size_t n, struct sched_plan *ret);
	/* Called once before the rest. -ENOMEM. */
	int (*begin)(struct placement *p, const struct sched_job *jobs,
		     size_t n);
	void (*end)(struct placement *p);
};

extern const struct plugin *const placement_table[];

struct score_memo;

struct placement {
	const struct placement_ops *ops;
	const void *options; /* borrowed; its own; NULL: it has none */
	void *state;
	struct rng rng;
	struct score_memo *memo;
	size_t n_shapes, n_nodes; /* of the memo */
};

/* For a workload and a cluster. -ENOMEM. */
int placement_init(struct placement *p, const struct placement_ops *ops,
		   const void *options, uint64_t seed, const struct cluster *c,
		   const struct sched_job *jobs, size_t n_jobs);
void placement_fini(struct placement *p);

/*
 * Place a job on what is free: up to job->n_gpus parts, at least one; *ret has
 * room for them. Takes nothing. Returns how many parts; 0: no room.
 */
size_t placement_place(struct placement *p, const struct cluster *c,
		       const struct sched_job *job, struct sched_part *ret);
/* The parts that a job may have at most. */
static inline size_t placement_parts(const struct sched_job *job)
{
	return job->n_gpus ? job->n_gpus : 1;
}

/* What the job asks for per GPU, or its share of the node: the default of the
 * hook `demand`. */
struct demand placement_demand(const struct sched_node *node,
			       const struct sched_job *job);
/* The share of the node that belongs to a GPU. */
struct demand placement_share(const struct sched_node *node);
/* A part of `n_gpus` GPUs with that demand each; which GPUs is left open. */
struct sched_part placement_part(uint32_t node, const struct sched_job *job,
				 uint32_t n_gpus, struct demand d);
/* Does the node have CPU, memory and as many GPUs, of a model that fits? */
bool placement_fits(const struct cluster *c, const struct sched_job *job,
		    const struct sched_part *part, uint32_t n_gpus);
/* The first `n` GPUs that are free enough, those with the least left first. */
uint32_t placement_tightest(const struct sched_node *n, uint32_t milli,
			    uint32_t gpus);

#endif
