/* SPDX-License-Identifier: MIT */
/* The gpemu-fs of a job (--mount), by the files of its .gpemu. */
#ifndef GPEMU_SCHED_LIVE_MOUNT_H
#define GPEMU_SCHED_LIVE_MOUNT_H

#include "sched/live/run.h"

/* Have it carry out commands, a line each, up to one that fails. If it cannot
 * be told, a warning says that the job's `what` could not be changed: that is
 * no reason to end all. -errno. */
int mount_tell(struct live *l, uint32_t job, const char *what,
	       const char *commands);
/* Bytes of which the reads so far found the objects cached, and not. -errno:
 * -ENODEV: no mount is there; -EBADMSG: what it says is not known. */
int mount_counts(const struct live *l, uint32_t job, uint64_t *ret_hits,
		 uint64_t *ret_misses);

#endif
