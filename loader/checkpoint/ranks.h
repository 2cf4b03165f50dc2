/* SPDX-License-Identifier: MIT */
/*
 * The ranks of a run share the folder of its checkpoints, and nothing else:
 *
 *	DIR/ranks		the agreement, see below
 *	DIR/rank-R/		the checkpoints of rank R, locked while it runs
 *
 * A step is complete when each rank has a whole checkpoint of it. The first
 * rank that resumes chooses the newest complete step, or the one that the user
 * gave, and writes it to DIR/ranks with its own number. The others read it
 * there and add theirs, however far the first has run by then. A rank that
 * finds its own number begins the next resume: no other rank may be running. If
 * a rank took no part in the last resume, its checkpoints newer than that do
 * not count. A rank that joins removes its newer checkpoints: their steps will
 * be done again.
 *
 * Ranks that run together (loader/comm) resume one after the other: rank 0
 * first, which always begins another resume.
 *
 * DIR/ranks is locked from ranks_open to ranks_unlock. It is written with one
 * write(2): a rank that is killed leaves the old or the new content.
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
	bool first; /* begins this resume, whatever DIR/ranks says */
	int dirfd;  /* of DIR; -1: not open */
	int file;   /* DIR/ranks, locked; -1: closed */
	bool agreed;
	uint64_t step;	/* if agreed: the step */
	json_t *joined; /* if agreed: the ranks that joined, an array */
};

/*
 * Open and lock DIR/ranks; create and lock DIR/rank-R, *ret_own. `world` is
 * above 1. -EBUSY: this rank runs already; -EINVAL: DIR is of a run with
 * another number of ranks. Close with ranks_close, failed or not.
 */
int ranks_open(struct ranks *r, const char *path, uint64_t rank, uint64_t world,
	       int *ret_own, struct err *err);
void ranks_close(struct ranks *r);
/* Parse the content of DIR/ranks; NULL: not JSON. -EAGAIN: incomplete; -EINVAL:
 * of a run with other ranks; `r` is then unchanged. */
int ranks_take(struct ranks *r, json_t *j, struct err *err);
/* For a run of one rank in this folder. -EINVAL: DIR has several ranks. */
int ranks_check_none(int dirfd, const char *path, struct err *err);

/* Have other ranks chosen the step for this one? Then it is `step`. */
bool ranks_follows(const struct ranks *r);
/* Check that no other rank is running. -EBUSY with a text. */
int ranks_check_ended(const struct ranks *r, struct err *err);
/* "rank-R" for errors and records. */
void ranks_name(uint64_t rank, char ret[32]);
/* The folder of a rank. -ENOENT: it has none. */
int ranks_dir(const struct ranks *r, uint64_t rank);

/*
 * The steps of which all ranks have a checkpoint, damaged or not, ascending;
 * free *ret. -ENOENT with a text: none, though some ranks have checkpoints.
 */
int ranks_complete(const struct ranks *r, uint64_t **ret, size_t *ret_n,
		   struct err *err);
/* The same after ranks_unlock, with the current DIR/ranks; the list may be
 * empty. -EAGAIN: a write is in progress. One thread. */
int ranks_complete_now(struct ranks *r, uint64_t **ret, size_t *ret_n);

/* Record that this rank goes on from `step`. Locked. */
int ranks_join(struct ranks *r, uint64_t step, struct err *err);
void ranks_unlock(struct ranks *r);

#endif
