/* SPDX-License-Identifier: MIT */
/*
 * The rest of a decision: jobs with which a policy that places by itself has
 * nothing to do.
 */
#ifndef GPEMU_SCHED_POLICY_OTHERS_H
#define GPEMU_SCHED_POLICY_OTHERS_H

#include "sched/core/schedule.h"

/*
 * Start the waiting jobs that are not the policy's own where the placement
 * finds room in s->scratch, first come, first served. -ENOMEM.
 */
int others_start(struct schedule *s, const struct view *v,
		 bool (*is_own)(const struct job *job), struct plan *ret);

#endif
