/* SPDX-License-Identifier: MIT */
/*
 * Plug-in kind `layer`: what a read meets between the front and the source.
 *
 * The layers of a mount are a stack. Each knows the one below (and the one
 * above) by the functions here alone; a NULL hook means that the next layer is
 * asked in its place, so a layer that is not there, or has nothing to do, costs
 * nothing. A new one is a file fs/layer/layer_<word>.c and its word in
 * fs/meson.build.
 *
 *	 trace	 read |             ^ answer      whole requests
 *	 fault        v             |
 *	 ------- the server splits the read into objects, under its lock ------
 *	 cache   ask  |   ^ offer                 objects
 *	 group        v   | (members of a group)
 *	 source       makes a new object, in flight
 *	 ------- and then, without the lock, -----------------------------------
 *	 device  start: the fetch of a new object; when it is done, the reads
 *	         that wait for the object are answered
 *
 * A read makes two trips. `ask` is the books': down and back up at once, for
 * each object under the server's lock, so that hits depend on the order of
 * reads alone and gpemu-cachesim can count the same. `start` is the bytes':
 * without the lock, and `answer` comes up from whatever thread has them.
 *
 * Objects, flights, open files and memory belong to the server
 * (fs/server/object.h, flight.h, handle.h): with two caches a read that misses
 * the upper one asks the lower one although the object is in flight already.
 */
#ifndef GPEMU_FS_SERVER_LAYER_H
#define GPEMU_FS_SERVER_LAYER_H

#include <jansson.h>

#include "common/plugin.h"
#include "fs/cache/policy.h"
#include "fs/server/server.h"

/* Where a layer may stand: never below one with a higher rank. Those of one
 * rank stand in any order. */
enum layer_rank {
	LAYER_REQUEST, /* whole requests */
	LAYER_CACHE,   /* keeps objects */
	LAYER_FETCH,   /* decides what a miss fetches */
	LAYER_DEVICE,  /* takes time */
	LAYER_SOURCE,  /* has the bytes */
};

/* What happens to the books besides reads; TRACE_* of fs/layer/trace.h. */
enum layer_event {
	LAYER_OFFER,	   /* an object came along with its group */
	LAYER_WARM,	   /* a command wants it cached, if there is room */
	LAYER_REMOVE,	   /* its fetch failed */
	LAYER_PASSTHROUGH, /* a file was opened that the kernel reads itself */
	LAYER_DROP_CACHE,
	LAYER_SET_CACHE,
	LAYER_EPOCH,
	LAYER_RESET,
};

/* init: the configuration gives it nothing to do. It is not linked. */
enum { LAYER_IDLE = 1 };

/* An answer to a read: bytes (n_iov 0: end of file), or error < 0. The memory
 * is valid until the call returns. */
struct answer {
	int error;
	const struct iovec *iov;
	int n_iov;
};

/* One object that a read asks for. */
struct ask {
	/* constant */
	struct cache_object what; /* key, bytes, file_bytes */
	uint32_t node;
	uint64_t arrival;
	bool first;  /* in this open, so it is counted */
	bool paid;   /* in this open: it may cost nothing any more */
	bool bypass; /* nobody keeps objects: only count */
	bool later;  /* its bytes are read by a reader thread */
	bool peeks;  /* its bytes are not wanted */
	/* the answer, set by who has it, looked at on the way up */
	struct object *object; /* with a reference; NULL: nowhere */
	bool hit;
	bool admitted, rejected; /* by some cache */
	bool offered;		 /* others came along: entries may have left */
	bool fresh;		 /* it is new, and so in flight */
	/* to be started once the lock is let go of; NULL: nothing */
	struct fetch *start;
	struct layer *starter; /* whose `start` it is */
};

/* What a command changes of a running stack; what is not set stays. */
struct layer_change {
	unsigned cache; /* its number from the top, from 0 */
	const char *policy;
	const struct units_capacity *size;
};

/* A number (or, with `text`, which stays until the next change, a word) of a
 * layer's stats. */
struct layer_stat {
	const char *name;
	uint64_t value;
	const char *text;
};
enum { LAYER_STATS = 16 };

struct layer {
	const struct layer_ops *ops;
	struct server *server;
	void *state;	  /* ops->plugin.state_size zeroed bytes */
	unsigned nth;	  /* from the top, of those with these ops; from 0 */
	unsigned n_alike; /* so many have these ops */
	uint8_t number;	  /* in the stack, from the top, from 1 */
	bool made;	  /* init was called */
	/* where its calls go: the next layer with that hook, or an end */
	struct layer *read, *metadata, *watches;	  /* below */
	struct layer *ask, *keeps, *warm, *start;	  /* below */
	struct layer *peek, *event;			  /* below, or NULL */
	struct layer *answer, *metadata_answered, *offer; /* above */
};

struct layer_ops {
	struct plugin plugin;
	enum layer_rank rank;
	bool needed; /* no stack without it */
	bool many;   /* it may stand there more than once; one word stands for
		      * all tiers */

	/* --- life: no other hook runs during init and fini ------------- */

	/* 0, LAYER_IDLE, or -errno with a text. NULL: nothing to do. */
	int (*init)(struct layer *l, struct err *err);
	/* After init, also a failed one. */
	void (*fini)(struct layer *l);
	/* Answer what it holds, and all that still comes, with -ECONNABORTED:
	 * when it returns it holds nothing. */
	void (*stop)(struct layer *l);

	/* --- whole requests, any thread, without a lock ----------------- */

	/* Pass `r` on (layer_read), answer it (layer_answer), or keep it and
	 * do one of the two later. */
	void (*read)(struct layer *l, struct read_request *r);
	/* Pass it on (layer_answer): the request is gone when that returns. */
	void (*answer)(struct layer *l, struct read_request *r,
		       const struct answer *a);
	/* Pass `f` on (layer_metadata) or call f->done, now or later. */
	void (*metadata)(struct layer *l, struct fetch *f);
	/* The front answers it, with an error < 0 or not. */
	void (*metadata_answered)(struct layer *l, const struct fetch *f,
				  int error);
	/* Must it see each read of this file (TREE_NONE: is there a file of
	 * which it must)? The kernel may read others by itself. If not, ask
	 * below (layer_watches). Cheap for TREE_NONE. */
	bool (*watches)(struct layer *l, uint32_t node);
	/* Who asks as `client` gives up: what is held of it ends, -EINTR. */
	void (*interrupt)(struct layer *l, void *client);

	/* --- objects, under the server's lock: no waiting, no I/O -------- */

	/* Find a->object, or pass it on (layer_ask) and look at what comes up.
	 * -ENOMEM. */
	int (*ask)(struct layer *l, struct ask *a);
	/* May an object of this file be found here at a later read? If not, ask
	 * below (layer_keeps). Where nobody keeps it, reads go to the device
	 * as they are. Who keeps those of all files counts in n_keepers of
	 * fs/server/stack.h, and is not asked for each read. */
	bool (*keeps)(struct layer *l, uint32_t node);
	/* Let a->what in, without an eviction, or pass it on (layer_warm). */
	enum layer_warmth (*warm)(struct layer *l, struct ask *a);
	/* From below: an object that a fetch brings along. Who has a use for
	 * it takes a reference; all pass it on (layer_offer). */
	void (*offer)(struct layer *l, struct object *o);
	/* To the layer that brought it along: its first access. */
	void (*accessed)(struct layer *l, struct object *o,
			 const struct ask *a);
	/* The object, if it is here; no reference, not counted. `kept`: only
	 * if it stays for more than one read, all of which are free. */
	struct object *(*peek)(struct layer *l, uint64_t key, bool kept);
	/* Its bytes cannot be read: let go of it. Was it here, as cached? */
	bool (*forget)(struct layer *l, const struct object *o);
	/* `seq`: its place among all that the books saw. `key`: of an object,
	 * else 0. */
	void (*event)(struct layer *l, enum layer_event event, uint64_t key,
		      uint64_t seq);
	/* Its numbers, into zeroed ones; how many, at most LAYER_STATS. The
	 * mount's stats have the sums of some (fs/server/server_stats.c). */
	size_t (*stats)(struct layer *l, struct layer_stat ret[LAYER_STATS]);

	/* --- fetches, any thread, without the lock ------------------------ */

	/* Begin it: f->done is called at its end, perhaps at once. It may be
	 * passed on later (layer_start), but for one that is `apart`: its
	 * deadline is known on return. Of a layer of rank CACHE: only what it
	 * starts itself (a->starter), a hit that takes time. */
	void (*start)(struct layer *l, struct fetch *f);

	/* --- changes, one at a time --------------------------------------- */

	/* Make what replaces its memory of the past, with `c` changed (NULL:
	 * all stays); *ret NULL: nothing to replace. Without the lock. */
	int (*renew)(struct layer *l, const struct layer_change *c, void **ret,
		     struct err *err);
	/* Under the lock: it is in force, *fresh is what it was before. */
	void (*swap)(struct layer *l, void **fresh);
	/* Without the lock. NULL is not given. */
	void (*discard)(struct layer *l, void *old);
	/* Counters back to zero, with those of the mount: under the lock. */
	void (*reset)(struct layer *l);
	/* More than numbers: into the mount's stats, or its part of it.
	 * Without the lock. */
	void (*json)(struct layer *l, json_t *stats, json_t *part);
};

extern const struct plugin *const layer_table[];

/* --- the way down and up ------------------------------------------------- */

static inline void layer_read(struct layer *l, struct read_request *r)
{
	l->read->ops->read(l->read, r);
}
static inline void layer_answer(struct layer *l, struct read_request *r,
				const struct answer *a)
{
	l->answer->ops->answer(l->answer, r, a);
}
static inline void layer_metadata(struct layer *l, struct fetch *f)
{
	l->metadata->ops->metadata(l->metadata, f);
}
static inline void layer_metadata_answered(struct layer *l,
					   const struct fetch *f, int error)
{
	l->metadata_answered->ops->metadata_answered(l->metadata_answered, f,
						     error);
}
static inline bool layer_watches(struct layer *l, uint32_t node)
{
	return l->watches->ops->watches(l->watches, node);
}
static inline bool layer_keeps(struct layer *l, uint32_t node)
{
	return l->keeps->ops->keeps(l->keeps, node);
}
static inline int layer_ask(struct layer *l, struct ask *a)
{
	return l->ask->ops->ask(l->ask, a);
}
static inline enum layer_warmth layer_warm(struct layer *l, struct ask *a)
{
	return l->warm->ops->warm(l->warm, a);
}
static inline void layer_offer(struct layer *l, struct object *o)
{
	l->offer->ops->offer(l->offer, o);
}
static inline void layer_start(struct layer *l, struct fetch *f)
{
	l->start->ops->start(l->start, f);
}

#endif
