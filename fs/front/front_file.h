/* SPDX-License-Identifier: MIT */
/* Open files of the mount: open, read, release. */
#ifndef GPEMU_FS_FRONT_FRONT_FILE_H
#define GPEMU_FS_FRONT_FRONT_FILE_H

#include <fuse_lowlevel.h>

#include "fs/front/front_private.h"

/* Reply to an open for reading of a dataset file, after the device charged
 * it; `may_wait`: not on the timing thread. */
void front_file_open(struct front *f, fuse_req_t req, fuse_ino_t ino,
		     bool may_wait);
/* Reply to an open of a control file. */
void front_file_open_ctl(struct front *f, fuse_req_t req, fuse_ino_t ino,
			 struct fuse_file_info *fi);
/* A write to a control file. */
void front_file_write_ctl(fuse_req_t req, const char *buf, size_t size,
			  off_t offset, struct fuse_file_info *fi);
void front_file_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
		     struct fuse_file_info *fi);
/* Reply to the open of a file that is not of the tree; the result is that of
 * fuse_reply_buf. */
int front_file_reply_open(fuse_req_t req, uint64_t fh);
void front_file_release(fuse_req_t req, fuse_ino_t ino,
			struct fuse_file_info *fi);
/* Free open files after an unmount: the kernel does not release them. */
void front_file_free_all(struct front *f);

#endif
