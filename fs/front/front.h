/* SPDX-License-Identifier: MIT */
/*
 * The FUSE front end: translates between the kernel's requests (libfuse's
 * low-level API) and the server. Files are opened with direct I/O, so that
 * the kernel keeps no second, unmodelled cache of their bytes. Names and
 * attributes of the dataset never change, so the kernel may cache them without
 * limit, or as long as a real client of the device does (names of its profile).
 * With a writable folder (fs/upper) there are further ones, which only the
 * clients of the mount change.
 */
#ifndef GPEMU_FS_FRONT_FRONT_H
#define GPEMU_FS_FRONT_FRONT_H

#include "fs/front/front_config.h"

struct front;

/* Check the mount options by mounting in a temporary folder; unmounted on
 * return. Errors as front_new. */
int front_try(const struct front_config *config, struct err *err);
/*
 * Mount. -EINVAL (options), -ENODEV, -EPERM, -EBUSY; with a text.
 */
int front_new(const struct front_config *config, struct front **ret,
	      struct err *err);
/* Serve until unmounted or stopped. 0 or -errno. */
int front_loop(struct front *f);
/*
 * End front_loop, from another thread; returns when the loop has ended, or
 * will not begin.
 */
void front_stop(struct front *f);
/* Unmount, if still mounted: no new request arrives after this. */
void front_unmount(struct front *f);
/*
 * Unmount, and end the connection: calls that still wait on the mount return,
 * in all threads. Pending requests must have been answered before
 * (server_stop, jobs_stop). NULL is allowed, as below.
 */
void front_disconnect(struct front *f);
/* Disconnects first. */
void front_free(struct front *f);

#endif
