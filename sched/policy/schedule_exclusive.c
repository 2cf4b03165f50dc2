/* SPDX-License-Identifier: MIT */
/*
 * One job at a time on a GPU, by arrival, each in a new process. What CoGNN
 * calls Default (software/default/run_default.sh of its repository).
 */
#include "sched/policy/groups.h"

const struct schedule_ops schedule_exclusive = {
	.plugin = { .name = "exclusive",
		    .summary = "one job at a time on a GPU, in a new process" },
	.cold = true,
	.places = true,
	.decide = groups_alone,
};
