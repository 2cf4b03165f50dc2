/* SPDX-License-Identifier: MIT */
/*
 * Where the rig ends: was this machine, rather than what it emulates, the
 * bottleneck of a run? Four limits, each of its own kind:
 *
 *	ceiling		the machine, with nothing emulated to wait for, is less
 *			than twice as fast as the run: the loop alone, or all
 *			CPUs busy
 *	timers		emulated durations end late by more than 1 % of a step
 *	cpu		the process used more than 90 % of the CPUs
 *	time_scale	emulated time runs faster or slower than real work does,
 *			and the GPU waited for real work for more than 1 % of
 *			the time
 */
#ifndef GPEMU_LOADER_ACCOUNT_RIG_H
#define GPEMU_LOADER_ACCOUNT_RIG_H

#include <jansson.h>
#include <stdio.h>

/* The limits, for gpemu-train and for what gpemu-run sees of a cell. */
/* Below, the rig's own work takes more than half of the time. */
#define RIG_CEILING_FACTOR 2
/* Source: docs/timing.md: 1 % of a step is 100 us of 10 ms, ten times the mean
 * lateness of an idle machine. A result with an error of 1 % passes most
 * checks of 2 %. */
#define RIG_ERROR_SHARE .01
/* arbitrary: above, a thread that wakes up often has to wait for a CPU */
#define RIG_CPU_SHARE .9

/* Sentences: us late, the same in % of a step, its ms. */
#define RIG_LATE                                                             \
	"ended %.3g us late on average, %.3g %% of a step of %.4g ms (wall " \
	"time)"
/* CPUs used, and all. */
#define RIG_CPU                                                              \
	"used %.3g of %.0f CPUs: real work and emulation waited for a CPU; " \
	"more CPUs would change the result"

/* A value of 0 is not known, and passes no limit. */
struct rig {
	double samples_per_wall_s;
	double ceiling; /* the same, of the loop alone */
	double late_us; /* mean lateness of a timer, wall */
	double step_us; /* mean step, wall */
	double cpus_used, cpus;
	double time_scale;
	double real_share; /* of the time, waits for work that is not emulated
			    */
};

/* {samples_per_wall_s, ceiling_samples_per_wall_s, timer_error_share,
 * cpu_share, real_stall_share, limits: [{limit, factor, why}]}, `factor`: by
 * which the limit is exceeded; NULL: no memory. */
json_t *rig_json(const struct rig *r);
/* A line for each limit that a rig_json() names; `of` comes behind the limit.
 */
void rig_print(const json_t *rig, const char *of, FILE *f);

#endif
