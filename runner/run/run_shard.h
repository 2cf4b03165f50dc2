/* SPDX-License-Identifier: MIT */
/*
 * A shard: one of N parts of the cells, for a study on several machines. Which
 * cells it has depends on the workload, its seed and N alone.
 */
#ifndef GPEMU_RUNNER_RUN_RUN_SHARD_H
#define GPEMU_RUNNER_RUN_RUN_SHARD_H

#include "runner/spec/run_workload.h"

struct shard {
	size_t index; /* from 0 */
	size_t n;     /* 0: no shards, all cells */
};

/* "2/4" is the second of four. -EINVAL with a text. */
int shard_parse(const char *text, struct shard *ret, struct err *err);

/*
 * Is cell `i` in the shard, for each cell; malloc'ed. The points of each
 * repetition are dealt in a random order, so that each shard has as many cells
 * as any other, or one less, and long and short ones alike. -ENOMEM.
 */
int shard_cells(const struct shard *s, const struct workload *w, bool **ret);
/* How many cells it has. */
size_t shard_n_cells(const struct shard *s, const struct workload *w);

#endif
