/* SPDX-License-Identifier: MIT */
/*
 * Inode numbers, attributes and listings. A node of the tree has the inode
 * number node + 1; the control directory and its files have numbers above all
 * of them.
 */
#ifndef GPEMU_FS_FRONT_FRONT_DIR_H
#define GPEMU_FS_FRONT_FRONT_DIR_H

#include <fuse_lowlevel.h>

#include "fs/front/front_private.h"
#include "fs/upper/upper.h"

/* Of control files and what is in the writable folder, which nobody else
 * changes: the kernel may keep names and attributes a day. */
#define FRONT_TIMEOUT_S 86400.0

bool front_is_ctl(fuse_ino_t ino);
/* Of a control file's inode. */
enum ctl_file front_ctl_file(fuse_ino_t ino);
/* `name` in the root (the control directory) or in the control directory;
 * 0: no such file. */
fuse_ino_t front_ctl_lookup(struct front *f, fuse_ino_t parent,
			    const char *name);

void front_stat(const struct front *f, fuse_ino_t ino, struct stat *ret);
/* The reply to a lookup; ino 0: "no such name", which is kept too, but for a
 * profile that says how long names are. */
void front_entry(const struct front *f, fuse_ino_t ino,
		 struct fuse_entry_param *ret);
/* Reply to a readdir (plus: with attributes) from `offset` on. `list`: names
 * that the tree lacks, or NULL. */
void front_readdir(const struct front *f, fuse_req_t req, fuse_ino_t ino,
		   size_t size, off_t offset, bool plus,
		   const struct upper_list *list);

#endif
