/* SPDX-License-Identifier: MIT */
/*
 * Fragmentation: how much of the free GPUs the jobs of a workload cannot use,
 * as the expectation over its typical jobs. Source: Weng et al., "Beware of
 * Fragmentation", USENIX ATC 2023, section 3.
 */
#ifndef GPEMU_SCHED_CORE_FRAG_H
#define GPEMU_SCHED_CORE_FRAG_H

#include "sched/core/job.h"

/* arbitrary: some 10 us for each node that changes */
enum { FRAG_KINDS_MAX = 1000 };

struct frag_job {
	uint32_t n_gpus, gpu_milli, cpu_milli;
	uint64_t models;
	double share; /* of the workload; they add up to 1 */
};

struct frag {
	struct frag_job *typical;
	size_t n;
};

/* The most frequent jobs, until they are 95 % of all. -ENOMEM. */
int frag_init(struct frag *f, const struct sched_job *jobs, size_t n);
void frag_fini(struct frag *f);
/* Thousandths of the node's free GPUs that a typical job could not use. */
double frag_node(const struct frag *f, const struct sched_node *n);
/* Of all nodes. */
double frag_cluster(const struct frag *f, const struct cluster *c);

/* Of a cluster over time: nodes that have not changed are not looked at. */
struct frag_meter {
	struct frag f; /* n == 0: off */
	double *of;    /* of each node, when it was looked at */
	uint32_t *changes;
};

/*
 * For the jobs of a workload. A job of more GPUs than a node has needs all of
 * a node. Off with more than FRAG_KINDS_MAX kinds of typical jobs. -ENOMEM.
 */
int frag_meter_init(struct frag_meter *m, const struct cluster *c,
		    const struct sched_job *jobs, size_t n);
void frag_meter_fini(struct frag_meter *m);
/* frag_cluster(); 0 if it is off. */
double frag_meter_see(struct frag_meter *m, const struct cluster *c);

#endif
