/* SPDX-License-Identifier: MIT */
/*
 * Fragmentation: how much of the free GPUs the jobs of a workload cannot use,
 * as the expectation over its typical jobs. Source: Weng et al., "Beware of
 * Fragmentation", USENIX ATC 2023, section 3.
 */
#ifndef GPEMU_SCHED_CORE_FRAG_H
#define GPEMU_SCHED_CORE_FRAG_H

#include "sched/core/job.h"

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
int frag_init(struct frag *f, const struct job *jobs, size_t n);
void frag_fini(struct frag *f);
/* Thousandths of the node's free GPUs that a typical job could not use. */
double frag_node(const struct frag *f, const struct node *n);
/* Of all nodes. */
double frag_cluster(const struct frag *f, const struct cluster *c);

#endif
