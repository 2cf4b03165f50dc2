/* SPDX-License-Identifier: MIT */
/* Placements that place all jobs anew with each decision. */
#ifndef GPEMU_SCHED_CORE_ANEW_H
#define GPEMU_SCHED_CORE_ANEW_H

#include "sched/core/schedule.h"

/*
 * The plan that leads from what is to where the placement puts the first
 * `n_chosen` of s->chosen, which has room for all active jobs. Jobs that stay
 * where they are with what they have are not in it. -ENOMEM.
 */
int anew_place(struct schedule *s, const struct view *v, size_t n_chosen,
	       struct plan *ret);

#endif
