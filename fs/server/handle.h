/* SPDX-License-Identifier: MIT */
/*
 * Open files. A handle in the middle of an object holds a reference, so that
 * its next chunk is in memory, cached or not. This memory is outside the cache.
 * When other objects need it, the handle that has held longest gives up its
 * object.
 */
#ifndef GPEMU_FS_SERVER_HANDLE_H
#define GPEMU_FS_SERVER_HANDLE_H

#include "fs/server/object.h"
#include "fs/server/visit.h"

/* An open file. */
struct handle {
	uint32_t node;
	bool was_held; /* ever held an object; set only by its own reads */
	/* below: under the server's lock */
	struct visit visit;
	/* the object read last, if not yet read to its end, as long as there is
	 * memory */
	struct object *held;
	struct handle *prev, *next; /* in the server's list */
	uint64_t seen_small; /* the bits of visit.seen, but of a large file */
};

/* NULL: no memory, or too many open files of more than 256 MiB, whose extents
 * are counted in memory. */
struct handle *server_open(struct server *s, uint32_t node);
void server_close(struct server *s, struct handle *h);

/* Before each read (visit_turn). Under the lock. */
void handle_turn(struct server *s, struct handle *h, uint64_t offset,
		 uint64_t bytes);
/* Hold `o`, which the handle is in the middle of; NULL: hold none. Under the
 * lock. */
void handle_hold(struct server *s, struct handle *h, struct object *o);
/* Memory for the bytes of `o`, which is to be fetched; if needed, other handles
 * give up their objects for it. false: there is none. Under the lock. */
bool handle_fill(struct server *s, struct object *o);

#endif
