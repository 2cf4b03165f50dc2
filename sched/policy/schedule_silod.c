/* SPDX-License-Identifier: MIT */
/*
 * SiloD: the scheduler of jobs also gives them cache and remote bandwidth, by
 * what these do for each of them. Here with the shortest remaining time first.
 * Source: Zhao et al., "SiloD", EuroSys 2023, sections 4 and 5.
 */
#include "sched/core/schedule.h"

const struct schedule_ops schedule_silod = {
	.plugin = { .name = "silod",
		    .summary = "SiloD: srtf, with cache where it saves the "
			       "most remote bandwidth" },
	.preempts = true,
	.storage = STORAGE_BY_SAVING,
	.key = job_left,
};
