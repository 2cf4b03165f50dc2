/* SPDX-License-Identifier: MIT */
/*
 * The bytes of one object (a file, or a 4 MiB extent of a large one) on their
 * way from the source to whoever waits for them, and in the cache.
 *
 *	           fetch done                 last reference
 *	FETCHING ------------> READY, FAILED ----------------> freed
 *
 * References: one of the flight (while FETCHING), one of the cache (while the
 * cache holds it), one of each read that waits or replies, one of a handle that
 * is in the middle of it. An object that the policy evicts while it is in
 *flight just loses the cache's reference: what waits for it still gets its
 *bytes.
 *
 * An object for which there was no memory (fs/server/budget.h) has no data: who
 *reads it has its bytes read again. One that is cached is replaced by another,
 *which is FETCHING, when there is memory.
 *
 * Fields but `refs` are guarded by the server's lock; `data` is constant once
 * READY and read without it.
 */
#ifndef GPEMU_FS_SERVER_OBJECT_H
#define GPEMU_FS_SERVER_OBJECT_H

#include <stdbool.h>
#include <stdint.h>

#include "fs/server/budget.h"
#include "fs/device/fetch.h"
#include "fs/server/hash.h"

/* Extent of a large file. Source: design target, the unit that hits are
 * counted in; four times the largest FUSE read, so that streaming pays the
 * device's latency once per 4 MiB. */
#define OBJECT_EXTENT (4u << 20)

struct read_part;
struct server;

enum object_state { OBJECT_FETCHING, OBJECT_READY, OBJECT_FAILED };

struct object {
	uint64_t key; /* object_key() */
	struct server *server;
	unsigned char *data; /* or NULL */
	union {
		struct budget *budget; /* that its data counts in, or NULL */
		struct object *lender; /* `borrows`: whose data it is */
	};
	size_t bytes;
	int error; /* of FAILED: -errno */
	unsigned refs;
	enum object_state state;
	/* the number of the layer that brought it along, and nobody asked for
	 * it yet; else 0 */
	uint8_t brought;
	bool borrows;
	union {
		struct read_part *waiters;
		struct object *next_dead; /* without references */
	};
	int backing_id; /* atomic: passthrough's; 0: none was made */
	struct fetch fetch;
	UT_hash_handle hh; /* in the server's table of flights */
};

/*
 * Memory of an object besides its bytes. Each of its two pieces has 8 bytes of
 * the allocator's before it, and ends, on average, 8 bytes before the next
 * multiple of 16.
 * Source: glibc, malloc/malloc.c, "Minimum overhead per allocated chunk";
 * measured: tests/contract/test_footprint.c
 */
#define OBJECT_OVERHEAD (sizeof(struct object) + 2 * 16)

static inline uint64_t object_key(uint32_t node, uint32_t extent)
{
	return (uint64_t)node << 32 | extent;
}

/* One reference, FETCHING, fetch filled in but for done, and no bytes. NULL: no
 * memory. */
struct object *object_new(struct server *server, uint32_t node, uint32_t extent,
			  uint64_t file_bytes, uint64_t arrival);
/* Memory for its bytes. false: the budget has none, or the machine. */
bool object_fill(struct object *o, struct budget *budget);
/* `o` shares the bytes of `from`, which has some and is READY. */
void object_borrow(struct object *o, struct object *from);
/* They do not count any more: the object is about to be freed. */
void object_give(struct object *o);
struct object *object_get(struct object *o);
/* NULL is allowed. */
void object_put(struct object *o);
/* Under the lock: the same, but what is freed then is freed after it. */
void server_put_object(struct object *o);
/* Let go of the server's lock, then free the dead. */
void server_unlock(struct server *s);

#endif
