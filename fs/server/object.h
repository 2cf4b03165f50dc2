/* SPDX-License-Identifier: MIT */
/*
 * The bytes of one object (a file, or a 4 MiB extent of a large one), from the
 * source to its readers and in the cache.
 *
 *	           fetch done                 last reference
 *	FETCHING ------------> READY, FAILED ----------------> freed
 *
 * References: one of the flight (while FETCHING), one of each cache that has
 * it, one of each read that waits or replies, one of a handle in the middle of
 * it. An object evicted while in flight only loses the cache's reference: its
 * waiters still get the bytes.
 *
 * An object without memory (fs/server/budget.h) has no data: each reader reads
 * its bytes again. If it is cached, another object, FETCHING, replaces it once
 * there is memory.
 *
 * The server's lock guards all fields but `refs`. `data` is constant once READY
 * and read without the lock.
 */
#ifndef GPEMU_FS_SERVER_OBJECT_H
#define GPEMU_FS_SERVER_OBJECT_H

#include <stdbool.h>
#include <stdint.h>

#include "fs/server/budget.h"
#include "fs/device/fetch.h"
#include "fs/server/hash.h"
#include "fs/server/visit.h"

struct read_part;
struct server;

enum object_state { OBJECT_FETCHING, OBJECT_READY, OBJECT_FAILED };

struct object {
	uint64_t key; /* object_key() */
	struct server *server;
	unsigned char *data; /* or NULL */
	union {
		struct budget *budget; /* budget of its data, or NULL */
		struct object *lender; /* if `borrows`: owner of the data */
	};
	size_t bytes;
	int error; /* of FAILED: -errno */
	unsigned refs;
	enum object_state state;
	/* number of the layer that prefetched it, until its first access; else
	 * 0 */
	uint8_t prefetched_by;
	bool borrows;
	union {
		struct read_part *waiters;
		struct object *next_dead; /* without references */
	};
	int backing_id; /* atomic: for passthrough; 0: none */
	struct fetch fetch;
	UT_hash_handle hh; /* in the server's table of objects in flight */
};

/*
 * Memory of an object besides its bytes. The allocator puts 8 bytes before each
 * of its two pieces, and rounding up to a multiple of 16 adds 8 on average.
 * Source: glibc, malloc/malloc.c, "Minimum overhead per allocated chunk";
 * measured: tests/contract/test_footprint.c
 */
#define OBJECT_OVERHEAD (sizeof(struct object) + 2 * 16)

static inline uint64_t object_key(uint32_t node, uint32_t extent)
{
	return (uint64_t)node << 32 | extent;
}

/* One reference, FETCHING, its fetch filled in except `done`, no bytes. NULL:
 * no memory. */
struct object *object_new(struct server *server, uint32_t node, uint32_t extent,
			  uint64_t file_bytes, uint64_t arrival);
/* Memory for its bytes. false: the budget or the machine has none. */
bool object_fill(struct object *o, struct budget *budget);
/* `o` shares the bytes of `from`, which is READY and has some. */
void object_borrow(struct object *o, struct object *from);
struct object *object_get(struct object *o);
/* NULL is allowed. */
void object_put(struct object *o);
/* Under the lock: the same, but memory is freed after it is released. */
void server_put_object(struct object *o);
/* Callback for the end of an object with a backing file; fn NULL: none. */
void server_on_backing_close(struct server *s, void (*fn)(int id, void *ctx),
			     void *ctx);

/* Release the server's lock, then free the dead objects. */
void server_unlock(struct server *s);

#endif
