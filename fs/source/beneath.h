/* SPDX-License-Identifier: MIT */
/*
 * Opens below a directory that somebody else may change at any time. No link
 * is followed, on no part of the way: who may write there cannot have us open
 * what lies elsewhere.
 */
#ifndef GPEMU_FS_SOURCE_BENEATH_H
#define GPEMU_FS_SOURCE_BENEATH_H

#include <stdbool.h>

struct beneath {
	int fd;	      /* of the directory; the caller's */
	bool no_call; /* openat2(2) is not there: the way is walked */
};

void beneath_init(struct beneath *b, int fd);
/*
 * open(2) of "a/b/c", without "..", or of "."; O_NOFOLLOW and O_CLOEXEC are
 * added. With O_PATH the last name may be a link, which is opened itself. With
 * `nowait` the way is one that the kernel has in memory.
 * A descriptor, or -errno: -ELOOP or -ENOTDIR of a link, -EAGAIN of `nowait`
 * where it would have to wait, or cannot tell.
 */
int beneath_open(const struct beneath *b, const char *path, int flags,
		 bool nowait);

#endif
