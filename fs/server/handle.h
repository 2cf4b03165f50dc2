/* SPDX-License-Identifier: MIT */
/*
 * Open files. A handle that is in the middle of an object holds it, so that
 * its next chunk is there whether it is cached or not. This is memory beside
 * the cache, and given up when something else needs it, by the handle that
 * has held longest.
 */
#ifndef GPEMU_FS_SERVER_HANDLE_H
#define GPEMU_FS_SERVER_HANDLE_H

#include "fs/server/object.h"

struct handle {
	uint32_t node;
	bool was_held; /* an object, at some time; set by its reads alone */
	/* below: under the server's lock */
	/* key of the object read last, 0: chunks of it need no second fetch,
	 * also when it is nowhere any more and they are read again */
	uint64_t paid;
	/* it, when it was not read to its end, as long as there is memory */
	struct object *held;
	struct handle *prev, *next; /* in the server's list */
	uint64_t seen_small; /* bit e: extent e was counted in this open */
	uint64_t *seen;	     /* &seen_small, or more bits for a large file */
};

/* The handle is in the middle of `o`; NULL: it is not. Under the lock. */
void handle_hold(struct server *s, struct handle *h, struct object *o);
/* Memory for the bytes of `o`, which is to be fetched, if need be that of what
 * other handles are in the middle of. false: there is none. Under the lock. */
bool handle_fill(struct server *s, struct object *o);

#endif
