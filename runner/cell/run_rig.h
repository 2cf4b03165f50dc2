/* SPDX-License-Identifier: MIT */
/*
 * Where the rig ends: was this machine the bottleneck of a cell? The limits
 * that its gpemu-train reports (`rig` of its record), and three of all programs
 * together:
 *
 *	timers	a mount's replies were late by more than 1 % of a step
 *	ceiling	the cell used more than half of the CPUs
 *	cpu	the cell used more than 90 % of the CPUs
 *
 * The last two need half a second: before, the programs start. A simulation has
 * none of these: its times do not depend on the machine.
 */
#ifndef GPEMU_RUNNER_CELL_RUN_RIG_H
#define GPEMU_RUNNER_CELL_RUN_RIG_H

#include <jansson.h>
#include <stdbool.h>

/* [{limit, of, factor, why}]: of which job, node of a job or mount, or "cell";
 * by which factor it is exceeded; empty: none is. NULL: no memory. */
json_t *rig_limits(const json_t *record);

bool rig_is_simulated(const json_t *record);

/* The shortest mean step of the jobs of a record, wall us; 0: no steps. */
double rig_step_us(const json_t *record);

#endif
