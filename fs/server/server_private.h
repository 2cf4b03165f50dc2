/* SPDX-License-Identifier: MIT */
/* Shared by server.c (life, control, stats) and read.c (the read path). */
#ifndef GPEMU_FS_SERVER_SERVER_PRIVATE_H
#define GPEMU_FS_SERVER_SERVER_PRIVATE_H

#include <errno.h>
#include <pthread.h>

#include "fs/cache/cache.h"
#include "fs/server/faults.h"
#include "fs/server/gate.h"
#include "fs/server/group_read.h"
#include "fs/server/server.h"

/* Cumulative counters at the start of an epoch; an epoch is a difference. */
struct epoch_mark {
	struct cache_counts cache;
	uint64_t backend_reads, backend_bytes;
	uint64_t start; /* emulated ns */
};

struct server {
	struct server_config c;
	struct fetcher *fetcher;
	struct gate gate;	      /* calls that are inside */
	uint64_t *sizes;	      /* of all files, ascending */
	pthread_mutex_t backing_lock; /* the innermost; both below */
	void (*backing_close)(int id, void *ctx);
	void *backing_ctx;
	const char *why_reply; /* atomic: server_set_hit_path */
	bool (*is_interrupted)(void *client);
	struct faults faults;	  /* has a lock of its own */
	uint64_t delivered_bytes; /* atomic */
	uint64_t reread_bytes;	  /* atomic; as there was no memory for them */
	uint64_t seen_bytes;	  /* atomic; of handles on large files */
	struct budget budget;

	/*
	 * For changes: taken first, and never by the timing thread, so memory
	 * may be had and freed under it.
	 */
	pthread_mutex_t change_lock; /* the next three */
	char *storage_name;
	struct epoch_mark *marks; /* starts of the epochs so far */
	size_t n_marks;

	/*
	 * All below, and every object's fields. The timing thread takes it: no
	 * I/O under it, nothing large is freed, nothing printed.
	 */
	pthread_mutex_t lock;
	struct object *dead; /* freed when the lock is let go of */
	struct storage_profile *storage;
	struct cache *cache;
	struct cache_counts before; /* of the caches before this one */
	struct object *flights;	    /* uthash by key: what is being fetched */
	uint64_t coalesced;	    /* reads that joined a flight */
	uint64_t passed_through;    /* opens */
	struct group_buffer buffer;
	struct handle *holders; /* utlist, that which held longest first */
	uint64_t held_bytes;	/* by them, cached or not */
	uint64_t filling_bytes; /* of objects in flight */
	uint64_t group_hits, group_hit_bytes; /* first reads of brought ones */
	/* what the cache counted as misses (and as rejected), and was there */
	struct cache_counts unmissed;
	uint64_t trace_seq; /* of the last access that was traced */
};

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

/* 0, until server_leave; -ECONNABORTED with a text: it has stopped. */
static inline int server_enter(struct server *s, struct err *err)
{
	if (gate_enter(&s->gate))
		return 0;
	return err_set(err, -ECONNABORTED, "the mount is at its end");
}
static inline void server_leave(struct server *s)
{
	gate_leave(&s->gate);
}

/* A cache for the server's objects. As server_new. */
int server_make_cache(struct server *s, const char *policy,
		      const struct units_capacity *size, struct cache **ret,
		      struct err *err);
/* One that is not in use any more; NULL is allowed. */
void server_free_cache(struct cache *c);
/* Under the lock: the counters as they stand. */
struct epoch_mark server_mark_now(struct server *s);

/* Let go of the lock, then free the dead. */
void server_unlock(struct server *s);
/* Under the lock: object_put, but what is freed then is freed after it. NULL is
 * allowed. */
void server_put_object(struct object *o);
/* The handle is in the middle of `o`; NULL: it is not. Under the lock. */
void handle_hold(struct server *s, struct handle *h, struct object *o);
/* Memory for the bytes of `o`, which is to be fetched, if need be that of what
 * other handles are in the middle of. false: there is none. Under the lock. */
bool server_fill(struct server *s, struct object *o);

/* The fetch of `o` ended: under the lock; returns who waits for it, to be woken
 * with read_wake, without the lock, before the flight's reference is put. */
struct read_part *read_arrived(struct server *s, struct object *o, int error);
void read_wake(struct read_part *waiters);
/* One of the things that the request waits for has happened. */
void read_settle(struct read_request *r);
/* Under the lock: the bytes of `o` cannot be read. */
void read_uncache(struct server *s, const struct object *o);
/* End what waits for memory; nothing waits for it any more. */
void read_stop(struct server *s);

/* What has met the faults: on to cache and device. */
void server_read_now(struct server *s, struct read_request *r);
void server_metadata_now(struct server *s, struct fetch *f);

#endif
