/* SPDX-License-Identifier: MIT */
/*
 * The files that cells run and read, by content: a changed program or script
 * changes the key of a cell, which therefore runs again.
 *
 * Included are the programs of gpemu that the cell starts, and gpemu-data if it
 * makes the dataset; an existing dataset folder, by names, sizes and times of
 * its files; files named in a configuration; and for `exec` every file named by
 * a word of its command, other keys and environment, and libgpemu.so.1. Files
 * that a program opens by itself are included only if a key of exec names them.
 */
#ifndef GPEMU_RUNNER_RUN_RUN_IDENTITY_H
#define GPEMU_RUNNER_RUN_RUN_IDENTITY_H

#include "runner/spec/run_workload.h"

/* Give the cells of `w` identities. Each file is read once: files of the points
 * now, others when a cell first names them; both folders are borrowed. -ENOMEM.
 */
int identity_init(struct workload *w, const char *bin_dir,
		  const char *share_dir);

/* {"gpemu-fs": {file, hash, bytes, changed}, ...} of one cell; NULL: no
 * memory. */
json_t *identity_of(const struct workload *w, const struct cell *cell,
		    bool mounted);

/* The hash of one of gpemu's programs; "": no such file, or no identity_init.
 * Borrowed from `w`. */
const char *identity_program(const struct workload *w,
			     enum run_program program);

/* One of `files` ({NAME: {file, hash, ...}}) that has changed; NULL: none. */
const char *identity_changed(const json_t *files);

/* The hash of a regular file in hex: of its content, or above 64 MiB of its
 * size and time. -errno. */
int identity_hash(const char *path, char hash[17]);

#endif
