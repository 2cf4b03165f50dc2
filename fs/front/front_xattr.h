/* SPDX-License-Identifier: MIT */
/*
 * Extended attributes of the mount's files. There is one: the file's position
 * on the emulated device, for loaders that sort their reads (gpemu-train
 * --sort-extents). On a real device FIEMAP gives it; the kernel passes FIEMAP
 * to no FUSE server.
 */
#ifndef GPEMU_FS_FRONT_FRONT_XATTR_H
#define GPEMU_FS_FRONT_FRONT_XATTR_H

#include <fuse_lowlevel.h>

/* A decimal number below 2^64 (fs/device/device.h: device_place). */
#define FRONT_XATTR_PLACE "user.gpemu.place"

/* ENODATA: another name, a control file, or a device without positions. */
void front_xattr_get(fuse_req_t req, fuse_ino_t ino, const char *name,
		     size_t size);
void front_xattr_list(fuse_req_t req, fuse_ino_t ino, size_t size);

#endif
