/* SPDX-License-Identifier: MIT */
/*
 * PipeSwitch: one job at a time on a GPU, by arrival, in a warm worker; the
 * parameters are copied layer by layer while the first layers already run, so
 * that a switch costs next to nothing, here nothing. Source: Bai et al.,
 * "PipeSwitch", OSDI 2020, as CoGNN compares itself with it.
 */
#include "sched/policy/groups.h"

const struct schedule_ops schedule_pipeswitch = {
	.plugin = { .name = "pipeswitch",
		    .summary = "one job at a time on a GPU, in a warm worker" },
	.places = true,
	.decide = groups_alone,
};
