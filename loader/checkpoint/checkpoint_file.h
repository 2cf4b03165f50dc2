/* SPDX-License-Identifier: MIT */
/*
 * A checkpoint as a file: a head, which samples of its epoch were visited,
 * and the model's state, which is only weight.
 *
 *	0	struct checkpoint_head, little-endian
 *	4096	visited_bytes: a bit for each sample of the dataset
 *	...	state_bytes
 *
 * It is written under another name, synced, renamed and synced again, so that
 * a file with a checkpoint's name is whole unless storage lost a part of it,
 * which the two checksums tell.
 */
#ifndef GPEMU_LOADER_CHECKPOINT_CHECKPOINT_FILE_H
#define GPEMU_LOADER_CHECKPOINT_CHECKPOINT_FILE_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

enum { CHECKPOINT_HEAD = 4096, CHECKPOINT_NAME = 48 };
#define CHECKPOINT_MAGIC "gpemuck1"

struct checkpoint_head {
	char magic[8];
	uint64_t head_hash; /* XXH3 of what follows in the head */
	uint64_t body_hash; /* XXH3 of what follows the head */
	uint64_t visited_bytes, state_bytes;
	char json[CHECKPOINT_HEAD - 40]; /* the point, ends with a zero */
};

/* Where a run stands after a step; in the file as JSON. */
struct checkpoint_point {
	uint64_t step;		    /* steps done since the run's beginning */
	uint64_t epoch, epoch_step; /* the epoch going on, its steps done */
	int64_t log_bytes;	    /* as visited_flush */
	json_t *run; /* what another run must have in common to go on */
};

/* "checkpoint-0000000120.gpemu" for step 120. */
void checkpoint_name(uint64_t step, char ret[CHECKPOINT_NAME]);

/* The steps of the checkpoints in a folder, ascending; free *ret. -errno. */
int checkpoint_list(int dirfd, uint64_t **ret, size_t *ret_n);

/* That of a step. -errno of unlink(2). */
int checkpoint_remove(int dirfd, uint64_t step);

/* The head without its hashes. -E2BIG: the JSON does not fit. */
int checkpoint_head_make(const struct checkpoint_point *p, size_t visited_bytes,
			 uint64_t state_bytes, struct checkpoint_head *ret);
/* The hash that belongs into head_hash. */
uint64_t checkpoint_head_hash(const struct checkpoint_head *h);

/*
 * Bytes of a head -> point; safe on any input. `ret->run` is owned. -EBADMSG:
 * not a whole head; -EPROTO: not what this version writes.
 */
int checkpoint_head_parse(const struct checkpoint_head *h,
			  struct checkpoint_point *ret);

/*
 * Read a whole checkpoint and check it. *ret_visited is owned by the caller.
 * -EBADMSG, -EPROTO: it is damaged; others as open(2) and read(2).
 */
int checkpoint_read(int dirfd, const char *name, struct checkpoint_head *head,
		    struct checkpoint_point *ret, uint8_t **ret_visited);

#endif
