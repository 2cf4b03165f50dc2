/* SPDX-License-Identifier: MIT */
/*
 * Writing the checkpoints of a run: files as large as the model's state, really
 * written and really synced.
 *
 * Saving takes as long as in a training job. The state leaves the device at the
 * speed of its link (emulated), then
 *
 *	sync	it is written, synced and renamed while the caller waits
 *	async	once the previous one is written, it is copied into a buffer
 *		in memory; a thread writes it while training goes on
 *
 * The state is CHECKPOINT_PIECE random bytes, repeated. Each 4 KiB block also
 * holds the step and its offset, so that no two blocks are equal and neither
 * compression nor deduplication below makes the write cheaper. Nothing is
 * generated while the time counts.
 *
 * One thread calls all of this.
 */
#ifndef GPEMU_LOADER_CHECKPOINT_CHECKPOINT_H
#define GPEMU_LOADER_CHECKPOINT_CHECKPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "common/hist.h"
#include "common/tick.h"
#include "loader/checkpoint/checkpoint_file.h"
#include "loader/checkpoint/ranks.h"

struct checkpoint_config {
	const char *dir; /* for messages */
	int dirfd;	 /* the folder; borrowed */
	bool async;
	uint64_t state_bytes; /* in the file, >= 1 */
	double scale;	      /* the part of the whole that they are, > 0 */
	size_t visited_bytes;
	uint64_t keep; /* number to keep, the newest; 0: all */
	/* NULL: no ranks. Only complete steps of all ranks count for `keep`. */
	struct ranks *ranks;
	struct tick *tick;
	uint64_t copy_ns; /* emulated: the state from the device to memory */
	uint64_t seed;
	int log_fd; /* synced before each checkpoint; -1: none */
};

struct checkpoint;

/* Allocates and, for async, starts the thread. -ENOMEM. */
int checkpoint_new(const struct checkpoint_config *c, struct checkpoint **ret,
		   struct err *err);
/* Waits for the write in progress. NULL is allowed. */
void checkpoint_free(struct checkpoint *c);

/*
 * Save. `visited` has visited_bytes; nothing is used after the return. -errno
 * of the write, in async also of an earlier one, with a text.
 */
int checkpoint_save(struct checkpoint *c, const struct checkpoint_point *p,
		    const uint8_t *visited, struct err *err);
/* Wait until all checkpoints are written. -errno as above. */
int checkpoint_drain(struct checkpoint *c, struct err *err);

/* Over the checkpoints written so far. */
struct checkpoint_stats {
	uint64_t n, bytes;
	uint64_t write_ns; /* emulated: time to write and sync them */
	uint64_t write_wall_ns;
};
struct checkpoint_stats checkpoint_stats(struct checkpoint *c);
/* The emulated time to write and sync each. */
const struct hist *checkpoint_times(const struct checkpoint *c);

#endif
