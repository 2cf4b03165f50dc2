/* SPDX-License-Identifier: MIT */
/*
 * Did other load disturb a cell? Judged by its effects, from the cell's record
 * and those of the other repetitions of its point:
 *
 *	cpu	other programs, or the host, took more than `limit` of its time
 *		from it (run_watch.h)
 *	disk	the same, by using the disk that it reads
 *	timers	emulated durations ended late, by more than an idle machine
 *		explains, by more than 1 % of a step, and by more than twice
 *		what the other repetitions saw; without others, while something
 *		was taken from the cell
 *	ceiling	the ceiling that gpemu-train measured before the run is lower
 *		than in another repetition, which reached its own
 *
 * What all repetitions of a point suffer alike is no disturbance but a limit of
 * the rig (run_rig.h).
 */
#ifndef GPEMU_RUNNER_CELL_RUN_DISTURB_H
#define GPEMU_RUNNER_CELL_RUN_DISTURB_H

#include <jansson.h>
#include <stdbool.h>

/*
 * What disturbed the cell: [{sign, seen}], `seen` in words and units; empty:
 * nothing. `peers`: records of other repetitions, an array, or NULL. `limit`:
 * the workload's `noise`; from 1 on nothing disturbs. NULL: no memory.
 */
json_t *disturb_signs(const json_t *record, const json_t *peers, double limit);

/* Does the record say so? */
bool disturb_is(const json_t *record);
/* How much: the share of its time that was taken from the cell. */
double disturb_share(const json_t *record);

#endif
