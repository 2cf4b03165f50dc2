/* SPDX-License-Identifier: MIT */
/*
 * Jobs that take turns on the same GPUs: while one computes, the next one
 * prepares its batch, and a third synchronises. Source: Zhao et al.,
 * "Multi-resource interleaving for deep learning training" (Muri), SIGCOMM
 * 2022, section 4.
 */
#ifndef GPEMU_SCHED_CORE_INTERLEAVE_H
#define GPEMU_SCHED_CORE_INTERLEAVE_H

#include "sched/core/job.h"

/*
 * ns in which each of the `n` jobs, 1 to GROUP_MAX, makes one iteration, in the
 * best order, if they do not disturb each other.
 */
double interleave_ns(const struct sched_job *const *jobs, size_t n);
/* The same, and in that order: by how many slots each of them is behind. */
double interleave_order(const struct sched_job *const *jobs, size_t n,
			uint8_t ret_offsets[GROUP_MAX]);
/* The same on this cluster, where they do; none is faster than alone. */
double interleave_on(const struct cluster *c,
		     const struct sched_job *const *jobs, size_t n);
/* The rate of a running job in its group: job_rate(), slowed down. */
double interleave_rate(const struct cluster *c, const struct sched_job *job);

#endif
