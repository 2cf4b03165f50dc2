/* SPDX-License-Identifier: MIT */
/*
 * The dataset of a workload: a folder that is there, or one that gpemu-data
 * makes from the recipe and that later runs and other workloads with the same
 * recipe use again.
 */
#ifndef GPEMU_WORKLOADS_RUN_DATASET_H
#define GPEMU_WORKLOADS_RUN_DATASET_H

#include "workloads/runner.h"

/*
 * Fill r->data with the folder's path, made or not yet: `data_dir`/NAME-HASH
 * of the recipe (NULL: $XDG_CACHE_HOME/gpemu, else ~/.cache/gpemu), or what
 * `dir:` names, seen from the workload file. -ENOENT, -ENOTDIR: `dir:` is no
 * folder.
 */
int dataset_locate(struct runner *r, const char *data_dir, struct err *err);

/*
 * Make it if it is not there. It appears whole or not at all, also when two
 * gpemu-run want it at once. -EINTR: a stop signal came.
 */
int dataset_make(struct runner *r, struct err *err);

#endif
