/* SPDX-License-Identifier: MIT */
/*
 * A checkpoint as a file: a head, the set of visited samples of its epoch, and
 * filler of the size of the model's state.
 *
 *	0	struct checkpoint_head, little-endian
 *	4096	visited_bytes: a bit for each sample of the dataset
 *	...	state_bytes
 *
 * It is written under another name, synced, renamed, and the folder synced. So
 * a file with a checkpoint's name is complete unless storage lost a part of it;
 * the two checksums detect that.
 */
#ifndef GPEMU_LOADER_CHECKPOINT_CHECKPOINT_FILE_H
#define GPEMU_LOADER_CHECKPOINT_CHECKPOINT_FILE_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

/* Source of the piece: ZFS's and Btrfs' compression and deduplication work on
 * records of 128 KiB at most; it is longer. */
enum {
	CHECKPOINT_HEAD = 4096,
	CHECKPOINT_NAME = 48,
	CHECKPOINT_BLOCK = 4096,
	CHECKPOINT_PIECE = 8 << 20
};
#define CHECKPOINT_MAGIC "gpemuck1"

struct checkpoint_head {
	char magic[8];
	uint64_t head_hash; /* XXH3 of the head after this field */
	uint64_t body_hash; /* XXH3 of the file after the head */
	uint64_t visited_bytes, state_bytes;
	char json[CHECKPOINT_HEAD - 40]; /* the point; ends with a NUL */
};

/* The position of a run after a step; in the file as JSON. */
struct checkpoint_point {
	uint64_t step;		    /* steps since the run's start */
	uint64_t epoch, epoch_step; /* the current epoch, steps done in it */
	int64_t log_bytes;	    /* length of the log, as visited_flush */
	json_t *run;		    /* options that a resuming run must share */
};

/* "checkpoint-0000000120.gpemu" for step 120. */
void checkpoint_name(uint64_t step, char ret[CHECKPOINT_NAME]);

/* The steps of the checkpoints in a folder, ascending; free *ret. -errno. */
int checkpoint_list(int dirfd, uint64_t **ret, size_t *ret_n);

/* Remove the checkpoint of a step. -errno of unlink(2). */
int checkpoint_remove(int dirfd, uint64_t step);

/* The head without its hashes. -E2BIG: the JSON does not fit. */
int checkpoint_head_make(const struct checkpoint_point *p, size_t visited_bytes,
			 uint64_t state_bytes, struct checkpoint_head *ret);
/* The value for head_hash. */
uint64_t checkpoint_head_hash(const struct checkpoint_head *h);

/*
 * Bytes of a head -> point; safe on any input. `ret->run` is owned. -EBADMSG:
 * not a complete head; -EPROTO: not of this version.
 */
int checkpoint_head_parse(const struct checkpoint_head *h,
			  struct checkpoint_point *ret);

/*
 * Bytes of a file per call, a power of two: 8 MiB of a whole file, at least a
 * block. Of a file that has a part of the state alone (`scale`), that part:
 * storage that takes each byte for several then gets calls of the same size.
 */
size_t checkpoint_piece(double scale);

/*
 * Read a complete checkpoint and verify it, in pieces as above. The caller owns
 * *ret_visited. -EBADMSG, -EPROTO: it is damaged; others as open(2) and
 * read(2).
 */
int checkpoint_read(int dirfd, const char *name, double scale,
		    struct checkpoint_head *head, struct checkpoint_point *ret,
		    uint8_t **ret_visited);

#endif
