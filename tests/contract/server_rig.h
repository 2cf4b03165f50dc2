/* SPDX-License-Identifier: MIT */
/*
 * A file server on a synthetic dataset of N_FILES files, and operations that a
 * test can start, inspect and wait for. A failed check ends the test.
 */
#ifndef GPEMU_TESTS_SERVER_RIG_H
#define GPEMU_TESTS_SERVER_RIG_H

#include "tests/unit/test.h"

#include "common/tick.h"
#include "fs/layer/layer_fault.h"
#include "fs/server/server.h"
#include "tests/contract/wait.h"

enum { N_FILES = 20, MAX_BYTES = 1 << 20 };

struct fixture {
	struct tree tree;
	const struct source_ops *source;
	void *source_state;
	struct tick *tick;
	uint32_t node[N_FILES];
	unsigned char *content[N_FILES];
	size_t bytes[N_FILES];
	/* of the servers that are started: */
	uint64_t memory;		/* besides the cache; 0: the default */
	const char *layers;		/* NULL: the default */
	const struct group_map *groups; /* or NULL, as below */
	const struct tiers *tiers;	/* or NULL: the policy given */
	struct trace *trace;
	const struct peer_net *peers; /* or NULL */
	double fraction;	      /* of the cache; 0: all of it */
	uint64_t prefetch;	      /* bytes; 0: none */
};

/* cmocka's group set-up and tear-down: *state is a fixture. */
int rig_setup(void **state);
int rig_teardown(void **state);

/* A server with a cache for all files. */
struct server *rig_start(struct fixture *f, const char *policy,
			 const char *storage);
void rig_add(struct server *s, const char *rule);
/* A number of its stats; a count of its i-th rule, which must exist. */
json_int_t rig_stat(struct server *s, const char *name);
json_int_t rig_fault(struct server *s, size_t i, const char *name);

/* Read the whole i-th file. The end waits, compares the bytes, and returns 0
 * or -errno. */
void rig_start_read(struct fixture *f, struct server *s, struct wait *w, int i);
int rig_end_read(struct fixture *f, struct server *s, struct wait *w, int i);
int rig_read(struct fixture *f, struct server *s, int i);
int rig_metadata(struct fixture *f, struct server *s, enum storage_op op,
		 int i);

#endif
