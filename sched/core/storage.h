/* SPDX-License-Identifier: MIT */
/*
 * What jobs share when they read: a cache, and the bandwidth of the remote
 * storage behind it. Source: Zhao et al., "SiloD", EuroSys 2023, section 4: a
 * job that reads each sample once an epoch in an order that is always new hits
 * for the share c / d of its dataset that is cached, so that with a bandwidth b
 * it reads at b / (1 - c / d), or as fast as it can use the data.
 *
 * No two jobs share a dataset. On the event clock caches are warm at once; a
 * live job has what its mount has of its data.
 */
#ifndef GPEMU_SCHED_CORE_STORAGE_H
#define GPEMU_SCHED_CORE_STORAGE_H

#include "sched/core/job.h"

enum storage_rule {
	/* Cache by the GPUs that a job has. */
	STORAGE_BY_GPUS,
	/* Cache where a MiB of it saves the most bandwidth. */
	STORAGE_BY_SAVING,
};

/* Does it read from the remote storage of this cluster? */
bool storage_reads(const struct cluster *c, const struct sched_job *job);
/* Give the running ones of the active jobs their cache, filled. Nothing to do
 * in a cluster without remote storage. -ENOMEM. */
int storage_split_cache(const struct cluster *c, enum storage_rule rule,
			struct sched_job *jobs, const uint32_t *active,
			size_t n);
/* And the bandwidth, by what is cached: max-min fair, nobody could get more but
 * from one who has no more. -ENOMEM. */
int storage_split_bandwidth(const struct cluster *c, struct sched_job *jobs,
			    const uint32_t *active, size_t n);
/* MiB/s that the job needs of the remote storage for its full speed. */
double storage_demand(const struct sched_job *job);
/* Its speed with what it got, of its full speed: up to 1. */
double storage_speed(const struct cluster *c, const struct sched_job *job);

#endif
