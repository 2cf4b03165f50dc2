/* SPDX-License-Identifier: MIT */
/* The folder to mount on: looked at before anything is started. */
#ifndef GPEMU_FS_MOUNTPOINT_H
#define GPEMU_FS_MOUNTPOINT_H

#include "common/err.h"

/*
 * Check that FUSE is there and that `path` is a folder that can be mounted on;
 * *ret is its absolute path, malloc'ed. A mount of a gpemu-fs that was killed
 * ("transport endpoint is not connected") is taken away first, with a warning.
 *
 * -ENODEV: no /dev/fuse. -EPERM: not for this user. -EBUSY: already a mount
 * point. -ENOTEMPTY: files in it would be hidden (unless `options` hold
 * "nonempty"). -ENOENT, -ENOTDIR.
 */
int mountpoint_prepare(const char *path, const char *options, char **ret,
		       struct err *err);

#endif
