/* SPDX-License-Identifier: MIT */
/*
 * What the cells run and read, by content: a cell whose program or script
 * changed has another key, and so runs again.
 *
 * Known are the programs of gpemu that the cell starts, and gpemu-data where
 * it makes the dataset; the folder of a dataset that was there, by the names,
 * sizes and times of its files; files that a configuration reads; and of an
 * `exec` every word of its command, other keys and environment that names a
 * file, beside libgpemu.so.1. What a program opens by itself is not known,
 * unless a key of exec names it.
 */
#ifndef GPEMU_RUNNER_RUN_RUN_IDENTITY_H
#define GPEMU_RUNNER_RUN_RUN_IDENTITY_H

#include "runner/spec/run_workload.h"

/* From now on the cells of `w` have identities, each file read once: now those
 * of each point, others when a cell first names them; `bin_dir` is borrowed.
 * -ENOMEM. */
int identity_init(struct workload *w, const char *bin_dir);

/* {"gpemu-fs": {file, hash, bytes, changed}, ...} of one cell; NULL: no
 * memory. */
json_t *identity_of(const struct workload *w, const struct cell *cell,
		    bool mounted);

/* The hash of one of gpemu's programs; "": there is none, or no identity_init.
 * Borrowed from `w`. */
const char *identity_program(const struct workload *w,
			     enum run_program program);

/* One of `files` ({NAME: {file, hash, ...}}) that is not what it was; NULL:
 * none. */
const char *identity_changed(const json_t *files);

/* Of a regular file's content, in hex; beyond 64 MiB of its size and time.
 * -errno. */
int identity_hash(const char *path, char hash[17]);

#endif
