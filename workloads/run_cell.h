/* SPDX-License-Identifier: MIT */
/*
 * One cell: mount, train, unmount, and the record of it.
 *
 * The record is that of gpemu-train with these members added:
 *
 *	status   "ok" or "failed"
 *	failure  why it failed, one line; null
 *	cell     {id, hash, workload, axes{}, repetition, seed, time_scale,
 *	         mounted, dataset, fs{}, train{}, commands[], exit_status,
 *	         started, wall_seconds}
 *	mount    the mount's statistics at the end; null without a mount
 */
#ifndef GPEMU_WORKLOADS_RUN_CELL_H
#define GPEMU_WORKLOADS_RUN_CELL_H

#include "workloads/runner.h"

/*
 * Can anything be mounted here? 0; -ENODEV: no, and the text says why (no
 * /dev/fuse, gpemu-fs exits with 75); -EINTR: a stop signal came. What fails
 * in another way will be reported by the cells.
 */
int cell_probe_mount(struct runner *r, struct err *err);

/*
 * Run it and write its record, also when it fails. 0: it is "ok". -EIO: it is
 * "failed", the text says why. -EINTR: a stop signal came, no record is
 * written. Nothing stays mounted and no process is left, whatever happened.
 */
int cell_run(struct runner *r, const struct cell *cell, struct err *err);

/*
 * The cell's record from an earlier run, when it is whole, "ok" and of this
 * very configuration; else NULL.
 */
json_t *cell_record(const struct runner *r, const struct cell *cell);

/* The commands of a cell, one a line, as they would be run. */
int cell_print(const struct runner *r, const struct cell *cell, FILE *f);

#endif
