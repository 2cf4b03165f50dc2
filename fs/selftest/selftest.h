/* SPDX-License-Identifier: MIT */
/*
 * Does a client of the mount see what the storage profile says? Mounts it, lets
 * a client open, read and list through the kernel, and compares the client's
 * measurements with the profile: the latency of an operation alone, and the
 * highest operations and bytes a second.
 */
#ifndef GPEMU_FS_SELFTEST_SELFTEST_H
#define GPEMU_FS_SELFTEST_SELFTEST_H

#include <stdint.h>

#include "common/err.h"

/* One of the mounts of a test. */
struct selftest_mount {
	const char *storage;
	double time_scale;
	const char *source, *mountpoint;
	int ready_fd; /* gets a byte when the mount is usable */
};

struct selftest_config {
	const char *storage;	/* the profile to test, name or path */
	double time_scale;	/* 0: chosen for each line */
	const char *source;	/* NULL: a synthetic dataset */
	const char *mountpoint; /* NULL: a temporary one */
	const char *json; /* where the record goes, or NULL; "-": stdout, and
			   * the table to stderr */
	uint64_t seed;
	/* Mount without a cache and serve until a signal ends it; called in a
	 * process of its own. Returns the exit status of the process; errors
	 * are reported on stderr. */
	int (*serve)(void *ctx, const struct selftest_mount *mount);
	void *ctx;
};

/*
 * Run the test: a table to stdout, the record to `json`. SIGINT, SIGTERM and
 * SIGHUP end it cleanly: nothing stays mounted. Call it while the process has
 * only one thread.
 *
 * 0: all lines pass. 1: a line misses. -errno with a text; -EINTR: a signal
 * ended it.
 */
int selftest_run(const struct selftest_config *config, struct err *err);

#endif
