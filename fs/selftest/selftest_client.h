/* SPDX-License-Identifier: MIT */
/*
 * A client of the mount: threads that open, read and list through the kernel,
 * as any program does, and read the clock before and after each call.
 */
#ifndef GPEMU_FS_SELFTEST_SELFTEST_CLIENT_H
#define GPEMU_FS_SELFTEST_SELFTEST_CLIENT_H

#include "common/err.h"
#include "fs/selftest/selftest_model.h"

struct client_file {
	char *path; /* absolute, with the mount point */
	uint64_t bytes;
};

/* The files and folders to access. All zeros is empty. */
struct client_tree {
	struct client_file *files; /* the largest first */
	size_t n_files;
	char **dirs;
	size_t n_dirs;
};

/* List the files below `root`, up to some 20,000. -errno with a text;
 * -ENOENT: no file. */
int client_scan(const char *root, struct client_tree *ret, struct err *err);
void client_tree_fini(struct client_tree *t);
/* The number of files with at least `bytes` bytes. */
size_t client_n_files_of(const struct client_tree *t, uint64_t bytes);

struct client_run {
	/* given */
	struct model_load load;
	size_t n;	   /* operations; lookups: at most one a file */
	uint64_t limit_ns; /* wall: begin no operation after this time */
	uint64_t seed;
	/* results, wall */
	uint64_t *ns; /* of each operation, ascending; owned */
	size_t n_done;
	double mean_ns;
	double rate;	  /* operations a second, without the first and last */
	uint64_t n_again; /* sequential reads that restarted a file */
};

/*
 * Run it on load.streams threads. Reads go to files of at least load.bytes, at
 * multiples of load.bytes. Each lookup needs a name not looked up before in
 * this mount, as the kernel caches names: measure lookups once for each mount.
 * -errno with a text.
 */
int client_measure(const struct client_tree *t, struct client_run *run,
		   struct err *err);
void client_run_fini(struct client_run *run);

#endif
