/* SPDX-License-Identifier: MIT */
/*
 * Extended attributes of the mount's files, for loaders: the file's position on
 * the emulated device, to sort reads (gpemu-train --sort-extents; on a real
 * device FIEMAP gives it, which the kernel passes to no FUSE server); and the
 * node whose cache owns it, to read it there (--order locality).
 */
#ifndef GPEMU_FS_FRONT_FRONT_XATTR_H
#define GPEMU_FS_FRONT_FRONT_XATTR_H

#include <fuse_lowlevel.h>

/* A decimal number below 2^64 (fs/device/device.h: device_place). */
#define FRONT_XATTR_PLACE "user.gpemu.place"

/* With --peers: a decimal number, from 0. */
#define FRONT_XATTR_OWNER "user.gpemu.owner"

/* Of the dataset: ENODATA: another name, a control file, a device without
 * positions, no node that owns the file. */
void front_xattr_get(fuse_req_t req, fuse_ino_t ino, const char *name,
		     size_t size);
void front_xattr_list(fuse_req_t req, fuse_ino_t ino, size_t size);
/* "user." ones of the writable folder; else EOPNOTSUPP, or EROFS. */
void front_xattr_set(fuse_req_t req, fuse_ino_t ino, const char *name,
		     const char *value, size_t size, int flags);
void front_xattr_remove(fuse_req_t req, fuse_ino_t ino, const char *name);

#endif
