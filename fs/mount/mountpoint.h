/* SPDX-License-Identifier: MIT */
/* The folder to mount on: checked before anything starts. */
#ifndef GPEMU_FS_MOUNT_MOUNTPOINT_H
#define GPEMU_FS_MOUNT_MOUNTPOINT_H

#include <stdbool.h>

#include "common/err.h"

/*
 * Check that FUSE is available and that `path` is a folder that can be mounted
 * on; *ret is its absolute path, malloc'ed. The mount of a killed gpemu-fs
 * ("transport endpoint is not connected") is unmounted first, with a warning.
 * With `replace` a live gpemu-fs may be mounted there: it stays until
 * mountpoint_replace.
 *
 * -ENODEV: no /dev/fuse. -EPERM: not for this user. -EBUSY: already a mount
 * point. -ENOTEMPTY: files in it would be hidden (unless `options` hold
 * "nonempty"). -ENOENT, -ENOTDIR.
 */
int mountpoint_prepare(const char *path, const char *options, bool replace,
		       char **ret, struct err *err);

/*
 * Unmount the gpemu-fs that is mounted on `path` (absolute), if there is one. A
 * busy one serves its open files until they are closed, and a warning says so.
 * The folder need not be empty: its files were hidden before. Errors as above.
 */
int mountpoint_replace(const char *path, struct err *err);

/* *ret: the absolute path of a gpemu-fs that is mounted there, dead or not.
 * -ENOENT, or as realpath(3); with a text. */
int mountpoint_running(const char *path, char **ret, struct err *err);

#endif
