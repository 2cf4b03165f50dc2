/* SPDX-License-Identifier: MIT */
/* Runs one cell: mount, run the jobs, unmount, write the record. */
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

/* Print the commands of a cell, one per line. */
int cell_print(const struct runner *r, const struct cell *cell, FILE *f);

#endif
