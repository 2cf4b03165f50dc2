/* SPDX-License-Identifier: MIT */
/*
 * The profiles that a workload's cells use, with a hash of their files: a
 * cell whose profile changed has another key, and so runs again.
 */
#ifndef GPEMU_RUNNER_CELL_RUN_PROFILES_H
#define GPEMU_RUNNER_CELL_RUN_PROFILES_H

#include "runner/spec/run_workload.h"

/*
 * Fill w->profiles: "storage/hdd": {file, hash, source} for all that any cell
 * names. `defaults` {fs{}, train{}}: what the programs take where the workload
 * says nothing. A name that the database does not know is left out: the program
 * that is given it says what is wrong. -ENOMEM; errors of a file that is
 * no such profile, with its place.
 */
int profiles_collect(struct workload *w, const json_t *defaults,
		     struct err *err);

/* Those of one cell, a part of w->profiles; NULL: no memory. Without a mount
 * there is no storage. */
json_t *profiles_of(const struct workload *w, const struct cell *cell,
		    bool mounted);

#endif
