/* SPDX-License-Identifier: MIT */
/* Open files of the writable folder, and the listings of a mount that has one.
 * Handlers of libfuse; fi->fh is a struct upper_file. */
#ifndef GPEMU_FS_FRONT_FRONT_UPPER_H
#define GPEMU_FS_FRONT_FRONT_UPPER_H

#include <fuse_lowlevel.h>

#include "fs/front/front_private.h"

void front_upper_open(fuse_req_t req, fuse_ino_t ino,
		      struct fuse_file_info *fi);
void front_upper_create(fuse_req_t req, fuse_ino_t folder, const char *name,
			mode_t mode, struct fuse_file_info *fi);
void front_upper_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
		      struct fuse_file_info *fi);
void front_upper_write(fuse_req_t req, fuse_ino_t ino, const char *buf,
		       size_t size, off_t offset, struct fuse_file_info *fi);
void front_upper_release(fuse_req_t req, fuse_ino_t ino,
			 struct fuse_file_info *fi);

/* Of all inodes: ENOSYS where there is no writable folder, and the kernel then
 * asks no more. */
void front_upper_fsync(fuse_req_t req, fuse_ino_t ino, int data,
		       struct fuse_file_info *fi);
void front_upper_fsyncdir(fuse_req_t req, fuse_ino_t ino, int data,
			  struct fuse_file_info *fi);
void front_upper_fallocate(fuse_req_t req, fuse_ino_t ino, int mode,
			   off_t offset, off_t bytes,
			   struct fuse_file_info *fi);
void front_upper_lseek(fuse_req_t req, fuse_ino_t ino, off_t offset, int whence,
		       struct fuse_file_info *fi);
/* Of all folders; fi->fh is a list, or 0 without a writable folder. */
void front_upper_opendir(fuse_req_t req, fuse_ino_t ino,
			 struct fuse_file_info *fi);
void front_upper_releasedir(fuse_req_t req, fuse_ino_t ino,
			    struct fuse_file_info *fi);
/* A listing from its begin, in a mount with a writable folder. */
void front_upper_list(fuse_req_t req, fuse_ino_t ino, size_t size, bool plus,
		      struct fuse_file_info *fi);

/* Attributes of any inode but those of control files. 0 or -errno. */
int front_upper_stat(const struct front *f, fuse_ino_t ino, struct stat *ret);

#endif
