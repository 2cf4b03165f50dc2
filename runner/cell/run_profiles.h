/* SPDX-License-Identifier: MIT */
/*
 * The profiles used by the cells of a workload, with hashes of their files: a
 * changed profile changes the key of a cell, which therefore runs again.
 */
#ifndef GPEMU_RUNNER_CELL_RUN_PROFILES_H
#define GPEMU_RUNNER_CELL_RUN_PROFILES_H

#include "runner/spec/run_workload.h"

/*
 * Fill w->profiles: "storage/hdd": {file, hash, source} for every profile that
 * a cell names. `defaults`: as runner_defaults() has them.
 * Unknown names are skipped: the program itself reports them. -ENOMEM; errors
 * in a profile, with position.
 */
int profiles_collect(struct workload *w, const json_t *defaults,
		     struct err *err);

/* The subset of w->profiles used by one cell; NULL: no memory. Without a mount
 * there is no storage profile. */
json_t *profiles_of(const struct workload *w, const struct cell *cell,
		    bool mounted);

#endif
