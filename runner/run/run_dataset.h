/* SPDX-License-Identifier: MIT */
/*
 * The dataset of a workload: a folder that is there, one that gpemu-fs makes
 * up on read, or one that gpemu-data makes from the recipe and that later runs
 * and other workloads with the same recipe use again.
 */
#ifndef GPEMU_RUNNER_RUN_RUN_DATASET_H
#define GPEMU_RUNNER_RUN_RUN_DATASET_H

#include "runner/run/runner.h"

/*
 * Decide r->data_dir: `data_dir`, or (NULL) $XDG_CACHE_HOME/gpemu, else
 * ~/.cache/gpemu; and see that every folder that the workload names is there:
 * -ENOENT.
 */
int dataset_init(struct runner *r, const char *data_dir, struct err *err);

/* Is it made up on read, and so nowhere without a mount? */
bool dataset_is_synth(const json_t *recipe);

/*
 * The folder of a recipe, made or not yet: `data_dir`/NAME-HASH, of the recipe
 * and the gpemu-data that makes it; or what
 * `dir:` names, seen from the workload file, or the "synth:..." that gpemu-fs
 * takes. malloc'ed. -ENOENT, -ENOTDIR:
 * `dir:` is no folder.
 */
int dataset_path(const struct runner *r, const json_t *recipe, char **ret,
		 struct err *err);

/*
 * Make all that the workload's cells need and that is not there. A folder
 * appears whole or not at all, also when two gpemu-run want it at once.
 * -EINTR: a stop signal came.
 */
int dataset_make(struct runner *r, struct err *err);

/* Call `fn` once for each recipe that differs, until it fails. */
int dataset_each(struct runner *r,
		 int (*fn)(struct runner *r, const json_t *recipe,
			   struct err *err),
		 struct err *err);

#endif
