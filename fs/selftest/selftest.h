/* SPDX-License-Identifier: MIT */
/*
 * Does the mount do to a client what the storage profile says? Mounts it, has
 * a client open, read and list through the kernel, and compares what the
 * client measured with what the profile asks for: how long an operation takes
 * alone, how many and how many bytes a second get through at most.
 */
#ifndef GPEMU_FS_SELFTEST_SELFTEST_H
#define GPEMU_FS_SELFTEST_SELFTEST_H

#include <stdint.h>

#include "common/err.h"

/* What one of the mounts of a test is to be. */
struct selftest_mount {
	const char *storage;
	double time_scale;
	const char *source, *mountpoint;
	int ready_fd; /* to be given a byte when the mount can be used */
};

struct selftest_config {
	const char *storage;	/* the profile to test, name or path */
	double time_scale;	/* 0: chosen for each line */
	const char *source;	/* NULL: one that is made up on read */
	const char *mountpoint; /* NULL: a temporary one */
	const char *json; /* where the record goes, or NULL; "-": stdout, and
			   * the table to stderr */
	uint64_t seed;
	/* Mount without a cache and serve until a signal ends it; called in a
	 * process of its own. Returns the process's exit status, and has said
	 * on stderr what was wrong. */
	int (*serve)(void *ctx, const struct selftest_mount *mount);
	void *ctx;
};

/*
 * The test: a table to stdout, the record to `json`. SIGINT, SIGTERM and
 * SIGHUP end it in order: nothing stays mounted. To be called while there is
 * only one thread.
 *
 * 0: all as requested. 1: something was not. -errno with a text; -EINTR: a
 * signal ended it.
 */
int selftest_run(const struct selftest_config *config, struct err *err);

#endif
