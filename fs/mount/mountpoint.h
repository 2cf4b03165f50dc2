/* SPDX-License-Identifier: MIT */
/* The folder to mount on: looked at before anything is started. */
#ifndef GPEMU_FS_MOUNT_MOUNTPOINT_H
#define GPEMU_FS_MOUNT_MOUNTPOINT_H

#include <stdbool.h>

#include "common/err.h"

/*
 * Check that FUSE is there and that `path` is a folder that can be mounted on;
 * *ret is its absolute path, malloc'ed. A mount of a gpemu-fs that was killed
 * ("transport endpoint is not connected") is taken away first, with a warning.
 * With `replace` a gpemu-fs that lives may be mounted there: it stays, and is
 * for mountpoint_replace.
 *
 * -ENODEV: no /dev/fuse. -EPERM: not for this user. -EBUSY: already a mount
 * point. -ENOTEMPTY: files in it would be hidden (unless `options` hold
 * "nonempty"). -ENOENT, -ENOTDIR.
 */
int mountpoint_prepare(const char *path, const char *options, bool replace,
		       char **ret, struct err *err);

/*
 * Unmount the gpemu-fs that is mounted on `path` (absolute), if one is; a busy
 * one lives on for the files that are open, and is warned of. Whether the
 * folder is empty does not matter: what is in it was hidden before. Errors as
 * above.
 */
int mountpoint_replace(const char *path, struct err *err);

/* *ret: the absolute path of a gpemu-fs that is mounted there, dead or not.
 * -ENOENT, or as realpath(3); with a text. */
int mountpoint_running(const char *path, char **ret, struct err *err);

#endif
