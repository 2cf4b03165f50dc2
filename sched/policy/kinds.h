/* SPDX-License-Identifier: MIT */
/*
 * Two kinds of machines for a job that runs on a GPU or without: a GPU, or a
 * node without GPUs, for one job.
 */
#ifndef GPEMU_SCHED_POLICY_KINDS_H
#define GPEMU_SCHED_POLICY_KINDS_H

#include "sched/core/schedule.h"

enum { ON_GPU, ON_CPU, KINDS };

/* All of its work there, in ns; INFINITY: it cannot run there. */
double kinds_work(const struct sched_job *job, int kind);
/* The kind on which it is faster. A job that asks for no GPU counts as one on
 * GPUs: the placement says where it runs. */
int kinds_best(const struct sched_job *job);
/* That on which it runs; ON_GPU if it does not. */
static inline int kinds_of(const struct sched_job *job)
{
	return job->n_gpus && job->n_parts && !job->parts[0].gpus ? ON_CPU
								  : ON_GPU;
}
static inline int kinds_other(int kind)
{
	return kind == ON_GPU ? ON_CPU : ON_GPU;
}
/* Is it a node without GPUs? */
static inline bool kinds_is_cpu(const struct sched_node *n)
{
	return !n->n_gpus;
}
/* Fill in s->parts with a machine that is free in s->scratch: by the placement,
 * or the first node that has the CPUs. How many parts; 0: there is none. */
size_t kinds_place(struct sched_schedule *s, const struct sched_job *job,
		   int kind);
/* The same on the kind on which it is faster, else on the other one. */
size_t kinds_place_any(struct sched_schedule *s, const struct sched_job *job);

#endif
