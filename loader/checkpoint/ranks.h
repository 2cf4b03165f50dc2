/* SPDX-License-Identifier: MIT */
/*
 * The ranks of a run share the folder of its checkpoints, and nothing else:
 *
 *	DIR/ranks		what they agreed on, below
 *	DIR/rank-R/		the checkpoints of rank R, locked while it runs
 *
 * A step is complete when each rank has a whole checkpoint of it. The first
 * rank that resumes chooses the newest complete one, or the one it was told,
 * and writes it to DIR/ranks with its own number; the others find it there and
 * add theirs, however far the first has come by then. A rank that finds its
 * own number begins the next resume: no other rank may be running, and of one
 * that took no part in the last, what is newer than that does not count. Who
 * joins removes its checkpoints that are newer: they are of steps that will be
 * done again.
 *
 * DIR/ranks is locked from ranks_open to ranks_unlock. It is written with one
 * write(2): a rank that is killed leaves the old or the new.
 */
#ifndef GPEMU_LOADER_CHECKPOINT_RANKS_H
#define GPEMU_LOADER_CHECKPOINT_RANKS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

struct ranks {
	const char *path; /* DIR */
	uint64_t rank, world;
	int dirfd; /* of DIR; -1: not open */
	int file;  /* DIR/ranks, locked; -1: not any more */
	bool agreed;
	uint64_t step;	/* agreed: on what */
	json_t *joined; /* agreed: by whom, an array */
};

/*
 * Open and lock DIR/ranks. *ret_own: DIR/rank-R, made and locked. `world` is
 * above 1. -EBUSY: this rank runs already; -EINVAL: DIR is of a run with
 * another number of ranks. Close with ranks_close, failed or not.
 */
int ranks_open(struct ranks *r, const char *path, uint64_t rank, uint64_t world,
	       int *ret_own, struct err *err);
void ranks_close(struct ranks *r);
/* What DIR/ranks says, NULL: no JSON. -EAGAIN: it is not whole; -EINVAL: of a
 * run with other ranks; `r` stays as it was. */
int ranks_take(struct ranks *r, json_t *j, struct err *err);
/* For a run of one rank, whose folder that is. -EINVAL: DIR is of several. */
int ranks_check_none(int dirfd, const char *path, struct err *err);

/* Does this rank take what others chose? Then `step`. */
bool ranks_follows(const struct ranks *r);
/* Nobody else may run now. -EBUSY with a text. */
int ranks_check_ended(const struct ranks *r, struct err *err);
/* "rank-R" for errors and records. */
void ranks_name(uint64_t rank, char ret[32]);
/* The folder of a rank. -ENOENT: it has none. */
int ranks_dir(const struct ranks *r, uint64_t rank);

/*
 * The steps of which all ranks have a checkpoint, whole or not, ascending;
 * free *ret. -ENOENT with a text: there is none, though ranks have some.
 */
int ranks_complete(const struct ranks *r, uint64_t **ret, size_t *ret_n,
		   struct err *err);
/* The same once the lock is gone, as DIR/ranks is then; it may be none.
 * -EAGAIN: that is being written. One thread. */
int ranks_complete_now(struct ranks *r, uint64_t **ret, size_t *ret_n);

/* This rank goes on from `step`. Locked. */
int ranks_join(struct ranks *r, uint64_t step, struct err *err);
void ranks_unlock(struct ranks *r);

#endif
