/* SPDX-License-Identifier: MIT */
/* The folder under a mount, held by a descriptor. */
#ifndef GPEMU_FS_FRONT_MOUNTPOINT_HOLD_H
#define GPEMU_FS_FRONT_MOUNTPOINT_HOLD_H

#include "common/err.h"

struct fuse_session;

/* A descriptor of a folder by its path, which is absolute and has no links.
 * -ESTALE: the path has a link now. */
int mountpoint_open(const char *path);

/* The folder under a mount. */
struct mountpoint {
	const char *name; /* for libfuse, as long as this is held */
	int fd;		  /* -1: fusermount3 mounts, and checks by itself */
	char held[32];
};

/*
 * Hold the folder at `path` (of mountpoint_prepare; must live as long) until it
 * is unmounted. A user who may rename a folder above it could make root mount
 * on, or unmount, the target of a link. So it is named by a descriptor.
 *
 * -ESTALE: the path leads through a link now.
 */
int mountpoint_hold(const char *path, struct mountpoint *ret, struct err *err);
/* Unmount what fuse_session_mount() mounted there, even if it is in use. */
void mountpoint_unmount(const struct mountpoint *m,
			struct fuse_session *session);
void mountpoint_release(struct mountpoint *m);

#endif
