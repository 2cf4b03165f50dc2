/* SPDX-License-Identifier: MIT */
/* Open files of the mount: open, read, release. */
#ifndef GPEMU_FS_FRONT_FRONT_FILE_H
#define GPEMU_FS_FRONT_FRONT_FILE_H

#include <fuse_lowlevel.h>

#include "fs/front/front_private.h"

/* Answer an open for reading of a dataset file, once the device has charged
 * it; `may_wait`: not on the timing thread. */
void front_file_open(struct front *f, fuse_req_t req, fuse_ino_t ino,
		     bool may_wait);
/* Answer an open of a control file. */
void front_file_open_ctl(struct front *f, fuse_req_t req, fuse_ino_t ino,
			 struct fuse_file_info *fi);
void front_file_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
		     struct fuse_file_info *fi);
void front_file_release(fuse_req_t req, fuse_ino_t ino,
			struct fuse_file_info *fi);
/* Of an unmount with files open, which the kernel does not release. */
void front_file_free_all(struct front *f);

#endif
