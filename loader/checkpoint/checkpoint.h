/* SPDX-License-Identifier: MIT */
/*
 * Writing the checkpoints of a run: files as large as the model's state,
 * really written and really synced.
 *
 * Saving takes what it takes a training job. The state leaves the device at
 * the speed of its link (emulated), then
 *
 *	sync	it is written, synced and renamed while the caller waits
 *	async	it is copied into a buffer in memory, after the one before has
 *		been written; a thread writes it while training goes on
 *
 * The state is 8 MiB of random bytes over and over; each 4 KiB block holds
 * the step and its place too, so that no two blocks are equal and neither
 * compression nor deduplication below can make the write cheaper. Nothing is
 * generated while the time counts.
 *
 * One thread calls all of this.
 */
#ifndef GPEMU_LOADER_CHECKPOINT_CHECKPOINT_H
#define GPEMU_LOADER_CHECKPOINT_CHECKPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "common/tick.h"
#include "loader/checkpoint/checkpoint_file.h"
#include "loader/checkpoint/ranks.h"

struct checkpoint_config {
	const char *dir; /* for messages */
	int dirfd;	 /* of it; borrowed */
	bool async;
	uint64_t state_bytes; /* >= 1 */
	size_t visited_bytes;
	uint64_t keep; /* so many, the newest; 0: all */
	/* NULL: none. Only what all ranks have counts for `keep`. */
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
/* Waits for what is being written. NULL is allowed. */
void checkpoint_free(struct checkpoint *c);

/*
 * Save. `visited` has visited_bytes; nothing is used after the return. -errno
 * of the write, in async also of one before, with a text.
 */
int checkpoint_save(struct checkpoint *c, const struct checkpoint_point *p,
		    const uint8_t *visited, struct err *err);
/* Wait until all are written. -errno as above. */
int checkpoint_drain(struct checkpoint *c, struct err *err);

/* Of the checkpoints written until now. */
struct checkpoint_stats {
	uint64_t n, bytes;
	uint64_t write_ns; /* emulated: writing and syncing them */
	uint64_t write_wall_ns;
};
struct checkpoint_stats checkpoint_stats(struct checkpoint *c);

#endif
