/* SPDX-License-Identifier: MIT */
/* The state of a server, for its own files and its layers; all others use
 * server.h. */
#ifndef GPEMU_FS_SERVER_STATE_H
#define GPEMU_FS_SERVER_STATE_H

#include <errno.h>
#include <pthread.h>

#include "fs/cache/cache.h"
#include "fs/server/budget.h"
#include "fs/server/gate.h"
#include "fs/server/layer.h"
#include "fs/server/server_config.h"
#include "fs/source/future.h"
#include "fs/source/importance.h"

struct handle;
struct object;

/* arbitrary: more than any use needs */
enum { MOST_LAYERS = 24 };

/* Cumulative counts of reads; an epoch is the difference of two. */
struct epoch_mark {
	struct cache_counts reads; /* evictions: see the layers */
	uint64_t backend_reads, backend_bytes;
	uint64_t start; /* emulated ns */
};

struct server {
	struct server_config c;
	struct fetcher *fetcher;
	struct gate gate;	      /* calls that are inside */
	uint64_t *sizes;	      /* of all files, ascending */
	pthread_mutex_t backing_lock; /* the innermost; guards the next two */
	void (*backing_close)(int id, void *ctx);
	void *backing_ctx;
	const char *why_reply; /* atomic: server_set_hit_path */
	bool (*is_interrupted)(void *client);
	uint64_t delivered_bytes; /* atomic */
	uint64_t reread_bytes;	  /* atomic; for lack of memory */
	uint64_t seen_bytes;	  /* atomic; of handles on large files */
	struct budget budget;

	/* the stack, constant once it serves */
	struct layer *layers[MOST_LAYERS]; /* from the top */
	size_t n_layers;
	struct layer top;   /* above all: requests enter and leave */
	struct layer split; /* between requests and objects (read.c) */
	struct layer floor; /* below all */

	uint64_t keeps_names_ns; /* atomic; UINT64_MAX: never forgotten */

	/*
	 * For changes: taken first, and never by the timing thread, so memory
	 * may be allocated and freed under it.
	 */
	pthread_mutex_t change_lock; /* guards the next seven */
	char *storage_name;
	uint64_t bandwidth;	 /* limit of the device, bytes per s; 0: none */
	struct future_in future; /* arrives */
	const void *future_writer; /* from there */
	bool foresees;		   /* a future has placed the objects */
	struct epoch_mark *marks;  /* starts of the epochs so far */
	size_t n_marks;

	/*
	 * Guards all below, the fields of every object and the object hooks of
	 * layers. The timing thread takes it: no I/O, no output and no freeing
	 * of large memory under it.
	 */
	pthread_mutex_t lock;
	struct object *dead; /* freed after the lock is released */
	struct storage_profile *storage;
	struct object *flights; /* uthash by key: objects in flight */
	struct cache_counts reads;
	uint64_t coalesced;	      /* reads that joined a flight */
	uint64_t passed_through;      /* opens */
	struct importance importance; /* changes under change_lock, too */
	uint64_t seq;		      /* of the last counted access or event */
	uint64_t epoch; /* changes with each event of all objects: epoch, reset,
			 * drop-cache, another cache; files that stay open
			 * count their objects again */
	uint64_t capacity;	     /* of the caches, in memory */
	uint64_t tiers[MOST_LAYERS]; /* of each of them */
	unsigned n_keepers;	     /* caches that keep objects of all files */
	struct handle *holders;	     /* utlist, longest holder first */
	uint64_t held_bytes;	     /* by handles, cached or not */
	uint64_t filling_bytes;	     /* of objects in flight */
};

/* Of the profile: call it when there is another one. */
static inline void server_see_names(struct server *s)
{
	uint64_t ns = s->storage->names.source ? s->storage->names.kept_ns
					       : UINT64_MAX;

	__atomic_store_n(&s->keeps_names_ns, ns, __ATOMIC_RELAXED);
}

/* 0: inside until server_leave; -ECONNABORTED with a text: it has stopped. */
static inline int server_enter(struct server *s, struct err *err)
{
	if (gate_enter(&s->gate))
		return 0;
	return err_set(err, -ECONNABORTED, "the mount is shutting down");
}
static inline void server_leave(struct server *s)
{
	gate_leave(&s->gate);
}

/* Count the first access to an object in its open. */
static inline void server_count(struct server *s, const struct ask *a)
{
	struct cache_counts *c = &s->reads;

	if (a->hit) {
		c->hits++;
		c->hit_bytes += a->what.bytes;
		return;
	}
	c->misses++;
	c->miss_bytes += a->what.bytes;
	c->rejected += a->rejected && !a->admitted;
}

/* --- reads, split into objects; the memory of their answers (read.c) ------ */

/* The end of the stack that splits reads into objects. */
extern const struct layer_ops read_split;

/* Memory of the mount for w->bytes of another answer, if there is some now;
 * server_return gives it back, if there was. */
bool server_borrow(struct server *s, struct budget_wait *w);
void server_return(struct server *s, struct budget_wait *w);

/* End the waits for memory; no read waits for it any more. */
void read_stop(struct server *s);

#endif
