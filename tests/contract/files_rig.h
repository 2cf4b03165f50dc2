/* SPDX-License-Identifier: MIT */
/*
 * A file server on a folder of N_FILES files: an empty one, one of more than
 * two extents, and small ones. Readers that check all bytes read. A failed
 * check ends the test. (tests/contract/server_rig.h has made-up files, all
 * small.)
 */
#ifndef GPEMU_TESTS_FILES_RIG_H
#define GPEMU_TESTS_FILES_RIG_H

#include "tests/unit/test.h"

#include <pthread.h>

#include "common/tick.h"
#include "fs/layer/layer_fault.h"
#include "fs/server/server.h"

enum { N_FILES = 40, N_THREADS = 6, N_READS = 300 };

struct fixture {
	char dir[64];
	unsigned char *content[N_FILES];
	size_t bytes[N_FILES];
	uint32_t node[N_FILES];
	struct tree tree;
	const struct source_ops *source;
	void *source_state;
	struct tick *tick;
	uint64_t memory; /* of the servers, besides the cache; 0: the default */
};

/* cmocka's group set-up and tear-down: *state is a fixture. */
int files_setup(void **state);
int files_teardown(void **state);

/* A server with a cache for 35 % of the bytes; the second one of `fraction`,
 * with groups (or NULL) and a buffer for them (0: the default). */
struct server *files_start(struct fixture *f, const char *policy,
			   const char *storage);
struct server *files_start_grouped(struct fixture *f, const char *policy,
				   const char *storage,
				   const struct group_map *groups,
				   double fraction, uint64_t buffer);
/* A number of its stats. */
json_int_t files_stat(struct server *s, const char *name);
/* The policy needs future accesses, which a mount does not know. */
bool files_is_offline(const struct plugin *policy);

/* Bytes read, or -errno. */
ssize_t files_read(struct fixture *f, struct server *s, struct handle *h,
		   void *into, size_t n, uint64_t offset);
/* Start reads on a slow device, the last of them of two extents, and end the
 * server before they complete. */
void files_end_with_reads_pending(struct fixture *f, struct server *s);

/* Many readers at once. */
struct reader {
	struct fixture *f;
	struct server *s;
	uint64_t index;
	size_t wrong;
	pthread_t thread;
};
void files_run_readers(struct fixture *f, struct server *s,
		       struct reader readers[N_THREADS]);
void files_join_readers(struct reader readers[N_THREADS]);
/* Caches, storage, epochs, importance change while many read. */
void files_change_while_read(struct fixture *f);

#endif
