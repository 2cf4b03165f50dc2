/* SPDX-License-Identifier: MIT */
/* Writes to control files. */
#ifndef GPEMU_FS_FRONT_FRONT_CTL_H
#define GPEMU_FS_FRONT_FRONT_CTL_H

#include <fuse_lowlevel.h>

#include "fs/front/front_private.h"

/* Do what ctl_write does and answer, now or from another thread
 * (fs/control/jobs.h). */
void front_ctl_write(struct front *f, fuse_req_t req, enum ctl_file file,
		     const void *writer, uint64_t offset, const char *text,
		     size_t n);
/* The writer has closed the file; after its writes. Errors are logged: the
 * close is over. */
void front_ctl_end(struct front *f, enum ctl_file file, const void *writer);

#endif
