/* SPDX-License-Identifier: MIT */
/*
 * Opens below a directory that another user may change at any time. No link is
 * followed on any part of the path, so that a user who may write there cannot
 * make us open files elsewhere.
 */
#ifndef GPEMU_FS_SOURCE_BENEATH_H
#define GPEMU_FS_SOURCE_BENEATH_H

#include <stdbool.h>

struct beneath {
	int fd;	      /* of the directory; the caller's */
	bool no_call; /* no openat2(2): the path is walked */
};

void beneath_init(struct beneath *b, int fd);
/*
 * open(2) of "a/b/c", without "..", or of "."; O_NOFOLLOW and O_CLOEXEC are
 * added. With O_PATH the last name may be a link, which itself is opened. With
 * `nowait` only paths that the kernel has in memory are opened.
 * A descriptor, or -errno: -ELOOP or -ENOTDIR for a link, -EAGAIN if `nowait`
 * would block, or if that is unknown.
 */
int beneath_open(const struct beneath *b, const char *path, int flags,
		 bool nowait);

#endif
