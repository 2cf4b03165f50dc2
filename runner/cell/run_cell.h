/* SPDX-License-Identifier: MIT */
/*
 * Runs one cell: mount, run the jobs, unmount, write the record.
 *
 * The record is that of the cell's only job (of gpemu-train, or what a
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
#ifndef GPEMU_RUNNER_CELL_RUN_CELL_H
#define GPEMU_RUNNER_CELL_RUN_CELL_H

#include "runner/run/runner.h"

/*
 * Test whether mounting works. 0; -ENODEV: no, the text says why (no /dev/fuse,
 * gpemu-fs exits with 75); -EINTR: stopped by a signal. Other failures are left
 * to the cells.
 */
int cell_probe_mount(struct runner *r, struct err *err);

struct cell_outcome {
	bool disturbed; /* by other load, as its record says */
	double taken;	/* disturb_share() */
};

/*
 * Run the cell and write its record, also if it fails. 0: "ok". -EIO: "failed",
 * the text says why. -EINTR: stopped by a signal, no record. In any case
 * everything is unmounted and all processes have ended. `attempt` counts from
 * 1.
 */
int cell_run(struct runner *r, const struct cell *cell, unsigned attempt,
	     struct cell_outcome *ret, struct err *err);
/* The same for a run that is no repetition: *ret_record, unless NULL, gets the
 * record of an "ok" run, and no file is written but log and configuration. */
int cell_try(struct runner *r, const struct cell *cell, json_t **ret_record,
	     struct err *err);

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

/* Print the commands of a cell, one per line. */
int cell_print(const struct runner *r, const struct cell *cell, FILE *f);

#endif
