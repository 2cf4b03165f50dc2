/* SPDX-License-Identifier: MIT */
/*
 * What Synergy's placements share: how much CPU and memory a job can use.
 * Source: Mohan et al., "Synergy", OSDI 2022, section 4.
 */
#ifndef GPEMU_SCHED_PLACE_SYNERGY_H
#define GPEMU_SCHED_PLACE_SYNERGY_H

#include "common/conf/conf.h"
#include "sched/core/placement.h"

struct synergy_options {
	bool profile;
};

extern const struct conf_field synergy_fields[];
extern const struct synergy_options synergy_defaults;

/*
 * The fewest CPUs and the least memory per GPU with which the job is as fast as
 * it gets on such a node: known exactly, or found by profiling at a few
 * numbers of CPUs. Never more than a share of the node by the job's GPUs. A job
 * of unknown speed gets what it asks for.
 */
struct demand synergy_demand(const struct sched_node *node,
			     const struct sched_job *job, bool profile);
/* CPUs per GPU that profiling finds among 1..max; *ret_n is how many numbers of
 * CPUs were measured. */
uint32_t synergy_profile(const struct speed *s, uint32_t max, unsigned *ret_n);
/* No more of either than the share of a GPU. */
struct demand synergy_fair(const struct sched_node *node, struct demand d);

#endif
