/* SPDX-License-Identifier: MIT */
/*
 * One job at a time on a GPU, by arrival, each in a new process. What CoGNN
 * calls Default (software/default/run_default.sh of its repository).
 */
#include "sched/policy/groups.h"

static int exclusive_decide(struct schedule *s, const struct view *v,
			    struct plan *ret)
{
	struct groups g = { .order = GROUPS_ARRIVAL, .most = 1 };

	return groups_decide(s, v, &g, ret);
}

const struct schedule_ops schedule_exclusive = {
	.plugin = { .name = "exclusive",
		    .summary = "one job at a time on a GPU, in a new process" },
	.cold = true,
	.places = true,
	.decide = exclusive_decide,
};
