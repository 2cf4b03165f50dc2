/* SPDX-License-Identifier: MIT */
/*
 * A cluster: nodes with GPUs of one model, CPUs and memory, and what of these
 * is free now.
 *
 * A GPU is divided into thousandths, so that several jobs may share one. A
 * cluster is a value that copies share nothing of but names: policies try
 * placements on a copy.
 */
#ifndef GPEMU_SCHED_CORE_CLUSTER_H
#define GPEMU_SCHED_CORE_CLUSTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

enum {
	GPU_MILLI = 1000,	 /* all of one */
	CLUSTER_GPUS_MAX = 16,	 /* of a node: as in the largest ones sold */
	CLUSTER_MODELS_MAX = 64, /* bits of a mask */
	GROUP_MAX = 4,		 /* jobs that take turns on the same GPUs */
	/* classes of parts: without GPU, a share of one, or so many */
	PART_NO_GPU = 0,
	PART_SHARE = 1,
	PART_CLASSES = PART_SHARE + CLUSTER_GPUS_MAX + 1
};

/* arbitrary: far beyond any cluster; keeps sums within 64 bits */
#define CLUSTER_NODES_MAX 1000000u
#define CLUSTER_CPU_MAX 1000000u /* of a node, in CPUs */
#define CLUSTER_MEMORY_MAX (1ull << 40)

struct sched_node {
	uint8_t model; /* of its GPUs: index into the names */
	uint8_t n_gpus;
	bool down; /* of its GPUs none can be taken now */
	uint32_t cpu_milli;
	uint64_t memory_mib;
	uint64_t gpu_memory_mib; /* of each GPU; 0: not known */
	/* its part of what the nodes share (sched/core/storage.h) */
	double cache_mib, remote_mib_s;
	double link_mib_s; /* to the other nodes, each way; 0: no limit */
	/* what is free */
	uint32_t cpu_free;
	uint64_t memory_free;
	uint16_t gpu_free[CLUSTER_GPUS_MAX]; /* thousandths */
	uint16_t held[PART_CLASSES];	     /* parts taken, of each class */
	/* Counts the changes of what is free: the same number in the same
	 * struct cluster means the same content. Last, see cluster_sync. */
	uint32_t changes;
};

/* Resources on one node. */
struct sched_part {
	uint32_t node;
	uint32_t gpus;	    /* a bit for each */
	uint32_t gpu_milli; /* of each of them */
	uint32_t cpu_milli;
	uint64_t memory_mib;
};

/* Sums over the nodes. */
struct capacity {
	uint64_t gpu_milli, cpu_milli, memory_mib;
};

struct cluster {
	struct sched_node *nodes;
	size_t n, allocated;
	struct capacity whole, free;
	double cache_mib, remote_mib_s;
	uint32_t gpus_max; /* of any node */
	char *models[CLUSTER_MODELS_MAX];
	size_t n_models;
	/* how much longer an iteration of a group of so many jobs takes than
	 * its stages; .25: a quarter */
	double interference[GROUP_MAX + 1];
};

/* Add `count` free nodes like `n`, of which only the constant part is read;
 * `model` names their GPUs. -ENOMEM; -E2BIG: more than there may be. */
int cluster_add(struct cluster *c, const struct sched_node *n,
		const char *model, uint64_t count);
void cluster_fini(struct cluster *c);
/* The index of a model of GPUs, new if need be; -ENOMEM, -E2BIG. */
int cluster_model(struct cluster *c, const char *name);

/* A copy to try placements on: nodes and sums, no names. -ENOMEM. */
int cluster_copy(const struct cluster *from, struct cluster *ret);
/* Make what is free in `to`, a copy of `from`, the same again; a node that
 * changes by it counts one more change. */
void cluster_sync(struct cluster *to, const struct cluster *from);
/* Nothing is taken any more, but on nodes that are down. */
void cluster_clear(struct cluster *c);

/* Its GPUs cannot be taken from now on, whatever of them is free, or can be
 * again. What is taken stays so. */
void cluster_set_down(struct cluster *c, uint32_t node, bool down);
/* Is all of the part free? */
bool cluster_has(const struct cluster *c, const struct sched_part *p);
/* The same, whatever is down: of who had it a moment ago. */
bool cluster_fits(const struct cluster *c, const struct sched_part *p);
/* Take a part, which must be free, and give it back. */
void cluster_take(struct cluster *c, const struct sched_part *p);
void cluster_give(struct cluster *c, const struct sched_part *p);

/* Number of GPUs of the part. */
static inline uint32_t part_gpus(const struct sched_part *p)
{
	return (uint32_t)__builtin_popcount(p->gpus);
}

/* The class of a part with so many GPUs, and so much of each. */
static inline uint32_t part_class(uint32_t n_gpus, uint32_t gpu_milli)
{
	if (!n_gpus)
		return PART_NO_GPU;
	return gpu_milli < GPU_MILLI ? PART_SHARE : PART_SHARE + n_gpus;
}

/* GPUs of the node that have `milli` free, and can be taken. */
static inline uint32_t node_gpus(const struct sched_node *n, uint32_t milli)
{
	uint32_t count = 0;

	for (uint32_t g = 0; !n->down && g < n->n_gpus; g++)
		count += n->gpu_free[g] >= milli;
	return count;
}

/* Free thousandths of all its GPUs. */
static inline uint32_t node_gpu_free(const struct sched_node *n)
{
	uint32_t sum = 0;

	for (uint32_t g = 0; g < n->n_gpus; g++)
		sum += n->gpu_free[g];
	return sum;
}

#endif
