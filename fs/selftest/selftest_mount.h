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
	bool temporary; /* the mount point is ours to remove */
	sigset_t signals, old_signals;
	pid_t pid;	     /* who serves, or 0 */
	const char *storage; /* what is mounted; NULL: nothing */
	double time_scale;
	pthread_t watcher;
	int stopping, interrupted; /* atomic */
};

/* Take the mount point, and the signals of this process. -errno with a text. */
int selftest_mounter_init(struct selftest_mounter *m,
			  const struct selftest_config *config,
			  struct err *err);
/* Unmount, give everything back. */
void selftest_mounter_fini(struct selftest_mounter *m);
/*
 * Have a fresh mount of this storage at this scale: the kernel knows no name
 * in it yet. `storage` must stay. -EINTR (a signal), -EIO (said on stderr),
 * -errno, with a text.
 */
int selftest_mount_fresh(struct selftest_mounter *m, const char *storage,
			 double time_scale, struct err *err);
/* Has a signal ended it? */
bool selftest_interrupted(const struct selftest_mounter *m);

#endif
