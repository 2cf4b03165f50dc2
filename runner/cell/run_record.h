/* SPDX-License-Identifier: MIT */
/*
 * The record of a cell is that of its only job (of gpemu-train, or what a
 * program wrote), with these members added; with several jobs, `jobs`
 * {NAME: record} takes its place:
 *
 *	status   "ok" or "failed"
 *	failure  why it failed, one line; null
 *	cell     {id, hash, workload, axes{}, repetition, seed, time_scale,
 *	         mounted, mounts{NAME: {folder, dataset{}, fs{}}},
 *	         jobs{NAME: {mount, start_s, train{} | exec{}, environment{}}},
 *	         gpud{} or null, prepd{} or null, s3{} or null,
 *	         profiles{}, files{NAME: {file, hash, ...}}, commands[],
 *	         gpemu, order, warmup, started, wall_seconds, attempts,
 *	         overrides[],
 *	         disturbed, disturbance[{sign, seen}] (run_disturb.h),
 *	         rig[{limit, of, factor, why}] (run_rig.h)}
 *	host     as reported by the job, and {name, kernel, machine, cpu,
 *	         cpus, memory_bytes, load_before, load_after, watch{}
 *	         (run_watch.h), and own_cpu_s and other_cpu_share of that}
 *	mount    the mount's statistics at the end; null without one mount;
 *	         with several, mounts {NAME: statistics}
 *	gpud     the final record of gpemu-gpud, if the cell has one
 *	s3       the final stats of gpemu-s3, if the cell has one
 *	prepd    {dispatcher{}, workers[{}]}, the final records of gpemu-prepd,
 *	         if the cell has one; and the sums of the workers' batches,
 *	         batches_made, made_s, cpu_s, bytes_sent
 *	run      {exit_status, wall_seconds} of the job
 */
#ifndef GPEMU_RUNNER_CELL_RUN_RECORD_H
#define GPEMU_RUNNER_CELL_RUN_RECORD_H

#include "runner/cell/run_state.h"

/* gpemu-train and gpemu-prepd wrote their records (other programs may), and the
 * samples came through the mount. -EIO with a text. */
int run_check_records(const struct run *run, struct err *err);

/* The record of what ran; sets run->disturbed. NULL: no memory. */
json_t *run_record(struct run *run, const char *failure);
/* The same, to its file. */
int run_write_record(struct run *run, const char *failure, struct err *err);
/* Add the numbers that `from` has under these keys to those of `sum`. */
void run_add_numbers(json_t *sum, const json_t *from, const char *const *keys,
		     size_t n);

/*
 * The cell's record from an earlier run, if it is complete, "ok" and of the
 * same configuration; else NULL.
 */
json_t *cell_record(const struct runner *r, const struct cell *cell);
/* The same, also of a run that failed. */
json_t *cell_any_record(const struct runner *r, const struct cell *cell);
/*
 * Judge again what disturbed the cell, now that other repetitions of its point
 * have records, and correct its record. true: disturbed.
 */
bool cell_judge(const struct runner *r, const struct cell *cell);

#endif
