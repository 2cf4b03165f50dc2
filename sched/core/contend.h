/* SPDX-License-Identifier: MIT */
/*
 * Jobs that run on a GPU at the same time: how much they slow each other down.
 *
 * Each keeps a part of the GPU busy when it is alone (gpu_busy of struct
 * sched_job). Together they have their full speed up to all of the GPU, beyond
 * it they share it; and where their memory is more than that of the GPU, all
 * are slowed down by paging. Jobs that take turns (sched/core/interleave.h) are
 * not at the same time: they slow each other down in that way alone.
 */
#ifndef GPEMU_SCHED_CORE_CONTEND_H
#define GPEMU_SCHED_CORE_CONTEND_H

#include "sched/core/storage.h"

struct gpu_load {
	double busy;
	uint64_t memory_mib;
};

struct contention {
	struct gpu_load *gpus; /* CLUSTER_GPUS_MAX of each node; NULL: no job
				* has a known load */
	size_t n;
	uint64_t n_over; /* GPUs whose jobs have more memory than there is */
};

/* -ENOMEM. */
int contention_init(struct contention *c, const struct cluster *cluster,
		    const struct sched_job *jobs, size_t n_jobs);
void contention_fini(struct contention *c);
/* The loads, by the active jobs that run; nothing to do if none is known. */
void contention_see(struct contention *c, const struct cluster *cluster,
		    const struct sched_job *jobs, const uint32_t *active,
		    size_t n);
/* The rate of a running job: interleave_rate(), slowed down by those on its
 * GPUs, and by its storage. */
double contention_rate(const struct contention *c,
		       const struct cluster *cluster,
		       const struct sched_job *job);

#endif
