/* SPDX-License-Identifier: MIT */
/* Muri where the remaining time of jobs is known: shortest remaining service
 * first. */
#include "sched/policy/muri.h"

MURI_SCHEDULE(
	muri_s,
	"Muri-S: groups that take turns, shortest remaining time x GPUs first",
	job_service_left);
