/* SPDX-License-Identifier: MIT */
/*
 * The capacity of the emulated device (--capacity), and what is used of it.
 *
 * It is counted in blocks: of each file, of the dataset and of the writable
 * folder, its size, rounded up. So holes count, too. One that was removed
 * counts until it is closed; removed is a file with no name in the folder,
 * whatever names it has outside. Names take no space, but a full device makes
 * no new ones.
 *
 *	write	upper_space_grow -> pwrite -> upper_space_settle
 *
 * `used` is never less than what the files have, as a write counts before it is
 * done, and, unless the folder was changed by others, never above `capacity`.
 * Calls wait for the file system of the folder: attributes, cuts, and names
 * that are removed.
 */
#ifndef GPEMU_FS_UPPER_UPPER_SPACE_H
#define GPEMU_FS_UPPER_UPPER_SPACE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/statvfs.h>
#include <sys/types.h>

#include "common/err.h"
#include "fs/source/tree.h"

/* arbitrary: as most file systems have it */
enum { UPPER_BLOCK = 4096 };

struct upper_linked;

struct upper_space {
	uint64_t capacity; /* constant, as the next; blocks. 0: no limit */
	double scale; /* a byte of the folder is 1 / `scale` of the device */
	pthread_mutex_t lock;
	/* by lock: */
	uint64_t used; /* blocks */
	/* Files of which a number of links says not how many names they have in
	 * the folder. One that is not here has a single name, or no link. */
	struct upper_linked *linked;
};

/* Of a file, by the lock: */
struct upper_taken {
	unsigned opens;	  /* while there are any, the next two count */
	unsigned changes; /* of its size, under way */
	uint64_t blocks;  /* of `used` */
};

void upper_space_init(struct upper_space *s);
void upper_space_fini(struct upper_space *s);
/* Before all calls below: a limit, of which the dataset and what is in the
 * folder `dir` have their parts. -ENOSPC: these are more; others as open(2). */
int upper_space_limit(struct upper_space *s, uint64_t bytes, double scale,
		      const struct tree *tree, int dir, struct err *err);

/* May a new name be made? 0 or -ENOSPC. */
int upper_space_check(struct upper_space *s);
/* A file is open by `fd`, once more or once less. */
void upper_space_open(struct upper_space *s, struct upper_taken *t, int fd);
void upper_space_close(struct upper_space *s, struct upper_taken *t, int fd);
/* For a write: how many of the `n` bytes have room. -ENOSPC: none. With `whole`
 * all or none. Else settle. */
ssize_t upper_space_grow(struct upper_space *s, struct upper_taken *t,
			 uint64_t offset, size_t n, bool whole);
void upper_space_settle(struct upper_space *s, struct upper_taken *t, int fd);
/* ftruncate(2) of an open file. */
int upper_space_truncate(struct upper_space *s, struct upper_taken *t, int fd,
			 uint64_t bytes);
/* A file that was just made: its number may be that of an earlier one. */
void upper_space_fresh(struct upper_space *s, int fd);
/* Under the lock: the file `fd` gets a further name (-ENOSPC, -ENOMEM), lost
 * one; `open`: it is in use. */
int upper_space_named(struct upper_space *s, int fd, bool open);
void upper_space_gone(struct upper_space *s, int fd, bool open);

/* Files that others account for, as they know their sizes: the blocks of so
 * many bytes; `add` of them more (0 or -ENOSPC), `less` of them. */
uint64_t upper_space_blocks(const struct upper_space *s, uint64_t bytes);
int upper_space_take(struct upper_space *s, uint64_t add);
/* The same whatever there is, and some less. */
void upper_space_move(struct upper_space *s, uint64_t add, uint64_t less);

/* What the device has, instead of its folder. */
void upper_space_statvfs(struct upper_space *s, struct statvfs *st);

#endif
