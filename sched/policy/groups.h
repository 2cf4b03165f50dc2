/* SPDX-License-Identifier: MIT */
/*
 * Jobs in groups: those of a group run on one GPU at the same time, and the
 * next group starts when all of them are done. What CoGNN and the systems that
 * it is compared with have in common.
 *
 * Jobs of one GPU whose load is known (gpu_busy of struct sched_job) are
 * grouped; the placement puts the others on what is left, first come, first
 * served.
 */
#ifndef GPEMU_SCHED_POLICY_GROUPS_H
#define GPEMU_SCHED_POLICY_GROUPS_H

#include "sched/core/schedule.h"

enum group_order {
	GROUPS_ARRIVAL,
	GROUPS_LEAST_MEMORY,
	GROUPS_BALANCED, /* the least and the most by turns */
};

enum { GROUPS_MEMBERS_MAX = 16 };

struct sched_groups {
	enum group_order order;
	uint64_t most; /* members */
	/* A group of several needs less memory of the GPU than this. */
	uint64_t budget_mib;
	uint64_t n_started; /* by which turns are counted; initially 0 */
};

/* `decide` of policies that run one job at a time on a GPU, by arrival. */
int groups_alone(struct sched_schedule *s, const struct view *v,
		 struct sched_plan *ret);
/* The same of other groups. -ENOMEM. */
int groups_decide(struct sched_schedule *s, const struct view *v,
		  struct sched_groups *g, struct sched_plan *ret);

#endif
