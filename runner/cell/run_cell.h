/* SPDX-License-Identifier: MIT */
/*
 * One cell: mount, run the jobs, unmount, and the record of it.
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
 *	         gpud{} or null,
 *	         profiles{}, files{NAME: {file, hash, ...}}, commands[],
 *	         gpemu, order, warmup, started, wall_seconds, attempts}
 *	host     what the job says of it, and {name, kernel, machine, cpu,
 *	         cpus, memory_bytes, load_before, load_after, own_cpu_s,
 *	         other_cpu_s, other_cpu_share}
 *	mount    the mount's statistics at the end; null without one mount;
 *	         with several, mounts {NAME: statistics}
 *	gpud     what gpemu-gpud wrote when it ended, where the cell has one
 *	run      {exit_status, wall_seconds} of the job
 */
#ifndef GPEMU_RUNNER_CELL_RUN_CELL_H
#define GPEMU_RUNNER_CELL_RUN_CELL_H

#include "runner/run/runner.h"

/*
 * Can anything be mounted here? 0; -ENODEV: no, and the text says why (no
 * /dev/fuse, gpemu-fs exits with 75); -EINTR: a stop signal came. What fails
 * in another way will be reported by the cells.
 */
int cell_probe_mount(struct runner *r, struct err *err);

struct cell_outcome {
	double other_share; /* of the CPUs, host_other() */
};

/*
 * Run it and write its record, also when it fails; `keep` false: a warm-up,
 * nothing is written. 0: it is "ok". -EIO: it is "failed", the text says why.
 * -EINTR: a stop signal came, no record is written. Nothing stays mounted and
 * no process is left, whatever happened. `attempt` counts from 1.
 */
int cell_run(struct runner *r, const struct cell *cell, unsigned attempt,
	     bool keep, struct cell_outcome *ret, struct err *err);

/*
 * The cell's record from an earlier run, when it is whole, "ok" and of this
 * very configuration; else NULL.
 */
json_t *cell_record(const struct runner *r, const struct cell *cell);

/* The commands of a cell, one a line, as they would be run. */
int cell_print(const struct runner *r, const struct cell *cell, FILE *f);

#endif
