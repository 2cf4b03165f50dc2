/* SPDX-License-Identifier: MIT */
/* The mounts of a self-test: one at a time, served by a child process. */
#ifndef GPEMU_FS_SELFTEST_SELFTEST_MOUNT_H
#define GPEMU_FS_SELFTEST_SELFTEST_MOUNT_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "fs/selftest/selftest.h"

struct selftest_mounter {
	const struct selftest_config *config;
	char *mountpoint;
	bool temporary; /* remove the mount point at the end */
	sigset_t signals, old_signals;
	pid_t pid;	     /* the serving child, or 0 */
	const char *storage; /* the mounted profile; NULL: none */
	double time_scale;
	pthread_t watcher;
	int stopping, interrupted; /* atomic */
};

/* Prepare the mount point and take over this process's signals. -errno with a
 * text. */
int selftest_mounter_init(struct selftest_mounter *m,
			  const struct selftest_config *config,
			  struct err *err);
/* Unmount, release everything. */
void selftest_mounter_fini(struct selftest_mounter *m);
/*
 * Make a fresh mount of this storage at this scale: the kernel has cached no
 * names of it yet. `storage` must stay valid. -EINTR (a signal), -EIO (reported
 * on stderr), -errno, with a text.
 */
int selftest_mount_fresh(struct selftest_mounter *m, const char *storage,
			 double time_scale, struct err *err);
/* Has a signal ended it? */
bool selftest_interrupted(const struct selftest_mounter *m);

#endif
