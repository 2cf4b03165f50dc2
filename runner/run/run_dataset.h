/* SPDX-License-Identifier: MIT */
/*
 * The dataset of a workload: an existing folder, a synthetic one that gpemu-fs
 * generates on read, or one that gpemu-data makes from the recipe; later runs
 * and other workloads with the same recipe reuse it.
 */
#ifndef GPEMU_RUNNER_RUN_RUN_DATASET_H
#define GPEMU_RUNNER_RUN_RUN_DATASET_H

#include "runner/run/runner.h"

/*
 * Set r->data_dir: `data_dir`, or if NULL $XDG_CACHE_HOME/gpemu, else
 * ~/.cache/gpemu; and check that every folder of the workload exists: -ENOENT.
 */
int dataset_init(struct runner *r, const char *data_dir, struct err *err);

/* Is it generated on read, so that it needs a mount? */
bool dataset_is_synth(const json_t *recipe);
/* Is it a folder, on disk or to be made? Else generated, or a file of
 * gpemu-data pack, whose path begins with DATASET_PACK. */
#define DATASET_PACK "pack:"
bool dataset_is_folder(const json_t *recipe);

/*
 * The folder of a recipe, made or not: `data_dir`/NAME-HASH, a hash of the
 * recipe and of gpemu-data; or the folder of `dir:`, relative to the workload
 * file; or the "synth:..." for gpemu-fs. malloc'ed. -ENOENT, -ENOTDIR: `dir:`
 * is no folder.
 */
int dataset_path(const struct runner *r, const json_t *recipe, char **ret,
		 struct err *err);

/* What has the files that the folder of a recipe has, or will have, with the
 * same sizes: it needs not exist; else as dataset_path. malloc'ed. */
int dataset_like(const struct runner *r, const json_t *recipe, char **ret,
		 struct err *err);

/*
 * Make the missing datasets of the workload. A folder appears atomically, even
 * if two gpemu-run make it concurrently. -EINTR: stopped by a signal.
 */
int dataset_make(struct runner *r, struct err *err);

/* Call `fn`, with `ctx`, for each distinct recipe, until it fails. */
int dataset_each(struct runner *r,
		 int (*fn)(struct runner *r, const json_t *recipe, void *ctx,
			   struct err *err),
		 void *ctx, struct err *err);

#endif
