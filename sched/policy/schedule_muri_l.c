/* SPDX-License-Identifier: MIT */
/* Muri where the remaining time of jobs is not known: least attained GPU time
 * first (2D-LAS). It is continuous, as in the authors' simulator. */
#include "sched/policy/muri.h"

MURI_SCHEDULE(muri_l,
	      "Muri-L: groups that take turns, least attained GPU time first",
	      job_attained);
