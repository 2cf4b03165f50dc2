/* SPDX-License-Identifier: MIT */
/* Muri where the remaining time of jobs is not known: least attained GPU time
 * first (2D-LAS). It is continuous, as in the authors' simulator. */
#include "sched/policy/muri.h"

const struct schedule_ops schedule_muri_l = {
	.plugin = { .name = "muri_l",
		    .summary = "Muri-L: groups that take turns, least attained "
			       "GPU time first",
		    .state_size = sizeof(struct muri),
		    .options = muri_fields,
		    .defaults = &muri_defaults,
		    .options_size = sizeof(struct muri_options) },
	.preempts = true,
	.places = true,
	.key = job_attained,
	.decide = muri_decide,
	.begin = muri_begin,
	.end = muri_end,
};
