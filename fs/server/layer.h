/* SPDX-License-Identifier: MIT */
/*
 * Plug-in kind `layer`: one stage that a read passes between front and source.
 *
 * The layers of a mount form a stack. A layer calls its neighbours only by the
 * functions here. A NULL hook is skipped: the call goes to the next layer, so
 * an absent or idle layer costs nothing. A new layer is a file
 * fs/layer/layer_<word>.c and its word in fs/meson.build.
 *
 *	 trace	 read |             ^ answer      whole requests
 *	 fault        v             |
 *	 ------- the server splits the read into objects, under its lock ------
 *	 prefetch ask |                           objects fetched ahead
 *	 cache   ask  |   ^ offer                 objects
 *	 group        v   | (members of a group)
 *	 peer             | admits? (objects that this node keeps)
 *	 source       makes a new object, in flight
 *	 ------- and then, without the lock, -----------------------------------
 *	 device  start: the fetch of a new object; when it is done, the reads
 *	         that wait for the object are answered
 *
 * A read passes the stack twice. `ask` does the accounting: down and up at
 * once, for each object under the server's lock, so that hits depend only on
 * the order of reads and gpemu-cachesim can count the same. `start` moves the
 * bytes: without the lock, and `answer` comes up on the thread that has them.
 *
 * Objects, flights, open files and memory belong to the server
 * (fs/server/object.h, flight.h, handle.h). With two caches, a read that misses
 * the upper one asks the lower one even if the object is already in flight.
 */
#ifndef GPEMU_FS_SERVER_LAYER_H
#define GPEMU_FS_SERVER_LAYER_H

#include <jansson.h>

#include "common/plugin.h"
#include "common/units.h"
#include "fs/cache/policy.h"
#include "fs/server/request.h"

struct future;

/* The default stack. A layer with nothing to do in the configuration is not
 * linked. */
#define LAYERS_DEFAULT "trace,fault,prefetch,cache,group,peer,device,source"

/* The position of a layer: never below one with a higher rank. Layers of equal
 * rank may be in any order. */
enum layer_rank {
	LAYER_REQUEST, /* whole requests */
	LAYER_AHEAD,   /* fetches objects before they are requested */
	LAYER_CACHE,   /* keeps objects */
	LAYER_FETCH,   /* decides what a miss fetches */
	LAYER_DEVICE,  /* takes time */
	LAYER_SOURCE,  /* has the bytes */
};

/* Events other than reads, with their place in the order of accesses; TRACE_*
 * of fs/layer/trace.h. */
enum layer_event {
	LAYER_OFFER,	   /* an object was prefetched with its group */
	LAYER_WARM,	   /* a command caches it, if there is room */
	LAYER_REMOVE,	   /* its fetch failed */
	LAYER_PASSTHROUGH, /* open of a file that the kernel reads itself */
	LAYER_DROP_CACHE,
	LAYER_SET_CACHE,
	LAYER_EPOCH,
	LAYER_RESET,
};

/* init: nothing to do in this configuration. It is not linked. */
enum { LAYER_IDLE = 1 };

/* An answer to a read: bytes (n_iov 0: end of file), or error < 0. The memory
 * is valid until the call returns. */
struct answer {
	int error;
	const struct iovec *iov;
	int n_iov;
};

/* A request of a read for one object. */
struct ask {
	/* constant */
	struct cache_object what; /* key, bytes, file_bytes */
	uint32_t node;
	uint64_t arrival;
	bool first;  /* first access in this open, so it is counted */
	bool paid;   /* paid for in this open: it must be free now */
	bool bypass; /* no layer keeps objects: only count */
	bool later;  /* its bytes are read by a reader thread */
	bool peeks;  /* its bytes are not needed */
	bool remote; /* for another node: no access of this one */
	/* the answer, set by the layer that has it, inspected on the way up */
	struct object *object; /* with a reference; NULL: no layer has it */
	bool hit;
	bool admitted, rejected; /* by some cache */
	bool offered;		 /* others prefetched: may have evicted some */
	bool fresh;		 /* it is new and in flight */
	/* to be started after the lock is released; NULL: nothing */
	struct fetch *start;
	struct layer *starter; /* the layer whose `start` to call */
};

/* The outcome of a command to cache an object. */
enum layer_warmth { WARM_LOADED, WARM_CACHED, WARM_REJECTED, WARM_FAILED };
/* A command's change to a running stack; unset fields stay as they are. */
struct layer_change {
	unsigned cache; /* its number from the top, from 0 */
	const char *policy;
	const struct units_capacity *size;
	bool keep; /* what fits; only the cache changes */
};

/* A number of a layer's stats (or, with `text`, a word, valid until the next
 * change). */
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
	unsigned nth;	  /* index among layers with these ops, from the top */
	unsigned n_alike; /* number of layers with these ops */
	uint8_t number;	  /* in the stack, from the top, from 1 */
	bool made;	  /* init was called */
	/* target of its calls: the next layer with the hook, or an end */
	struct layer *read, *metadata, *watches;	  /* below */
	struct layer *ask, *keeps, *warm, *start;	  /* below */
	struct layer *admits;				  /* below */
	struct layer *peek, *event;			  /* below, or NULL */
	struct layer *answer, *metadata_answered, *offer; /* above */
};

struct layer_ops {
	struct plugin plugin;
	enum layer_rank rank;
	bool needed; /* every stack must have it */
	bool many;   /* may repeat; a single word stands for all tiers */

	/* --- life: no other hook runs during init and fini ------------- */

	/* 0, LAYER_IDLE, or -errno with a text. NULL: nothing to do. */
	int (*init)(struct layer *l, struct err *err);
	/* The stack is linked: its threads may begin. -errno with a text. */
	int (*begin)(struct layer *l, struct err *err);
	/* After init, even a failed one. */
	void (*fini)(struct layer *l);
	/* Answer all it holds, and all that still arrives, with -ECONNABORTED.
	 * On return it holds nothing. */
	void (*stop)(struct layer *l);

	/* --- whole requests, any thread, without a lock ----------------- */

	/* Pass `r` on (layer_read), answer it (layer_answer), or keep it and do
	 * one of the two later. */
	void (*read)(struct layer *l, struct read_request *r);
	/* Pass it on (layer_answer); `r` must not be used after that. */
	void (*answer)(struct layer *l, struct read_request *r,
		       const struct answer *a);
	/* Pass `f` on (layer_metadata) or call f->done, now or later. */
	void (*metadata)(struct layer *l, struct fetch *f);
	/* The front answers it; error is < 0 or 0. */
	void (*metadata_answered)(struct layer *l, const struct fetch *f,
				  int error);
	/* Must this layer see each read of the file (TREE_NONE: of any file)?
	 * If not, ask below (layer_watches). The kernel may read other files by
	 * itself. Must be cheap for TREE_NONE. */
	bool (*watches)(struct layer *l, uint32_t node);
	/* The requester `client` gives up: end what is held for it with
	 * -EINTR. */
	void (*interrupt)(struct layer *l, void *client);

	/* --- objects, under the server's lock: no waiting, no I/O -------- */

	/* Find a->object, or pass it on (layer_ask) and inspect the result.
	 * -ENOMEM. */
	int (*ask)(struct layer *l, struct ask *a);
	/* May this layer have an object of the file at a later read? If not,
	 * ask below (layer_keeps). Reads of files that no layer keeps go to the
	 * device unsplit. A layer that keeps all files counts in n_keepers of
	 * fs/server/stack.h, and this is not called for each read. */
	bool (*keeps)(struct layer *l, uint32_t node);
	/* The node whose cache holds the file for all; false: none. NULL: as
	 * if false. Any thread, without the lock. */
	bool (*owner)(struct layer *l, uint32_t node, uint32_t *ret);
	/* May the cache `tier` above, from 0, keep this object? If this layer
	 * has nothing against it, ask below (layer_admits). Only with the peers
	 * of server_config. */
	bool (*admits)(struct layer *l, uint64_t key, unsigned tier);
	/* Admit a->what without an eviction, or pass it on (layer_warm). */
	enum layer_warmth (*warm)(struct layer *l, struct ask *a);
	/* From below: an object prefetched by a fetch. A layer that keeps it
	 * takes a reference; every layer passes it on (layer_offer). */
	void (*offer)(struct layer *l, struct object *o);
	/* To the layer that prefetched it: its first access. */
	void (*accessed)(struct layer *l, struct object *o,
			 const struct ask *a);
	/* The object, if the layer has it; no reference, not counted. `kept`:
	 * only if it stays for more than one read, and all of them are free. */
	struct object *(*peek)(struct layer *l, uint64_t key, bool kept);
	/* Its bytes cannot be read: drop it. true: it was here, as cached. */
	bool (*forget)(struct layer *l, const struct object *o);
	/* `seq`: its place in the order of counted accesses and events. `key`:
	 * of an object, else 0. */
	void (*event)(struct layer *l, enum layer_event event, uint64_t key,
		      uint64_t seq);
	/* The importance of a file has changed (fs/source/importance.h). */
	void (*reweigh)(struct layer *l, uint32_t node);
	/* Fill in its numbers (zeroed before); returns how many, at most
	 * LAYER_STATS. Some are summed into the mount's stats
	 * (fs/server/server_stats.c). */
	size_t (*stats)(struct layer *l, struct layer_stat ret[LAYER_STATS]);

	/* --- fetches, any thread, without the lock ------------------------ */

	/* Begin it: f->done is called at its end, perhaps at once. It may be
	 * passed on later (layer_start). A layer of rank CACHE gets only the
	 * fetches it starts itself (a->starter): hits that take time.
	 *
	 * f->apart is a read that no layer keeps. The caller waits for memory
	 * while the device works, then reads the bytes itself (fetch_read),
	 * which also calls f->done. Such a fetch is passed on at once; on
	 * return f->deadline is set, and nothing has been read. */
	void (*start)(struct layer *l, struct fetch *f);

	/* --- changes, one at a time --------------------------------------- */

	/* Choose what the caches keep by the accesses to come. 1: others than
	 * before, the caches start empty. -EINVAL, -ENOMEM, with a text. */
	int (*place)(struct layer *l, const struct future *f, struct err *err);
	/* Fetch ahead by these accesses, instead of earlier ones. -ENOMEM. */
	int (*foresee)(struct layer *l, struct future *f, struct err *err);
	/* Make a replacement for its history, with `c` applied (NULL: no
	 * change); *ret NULL: nothing to replace. Without the lock. */
	int (*renew)(struct layer *l, const struct layer_change *c, void **ret,
		     struct err *err);
	/* Under the lock: put the replacement into use; *fresh is the old one
	 * then. */
	void (*swap)(struct layer *l, void **fresh);
	/* Without the lock. Never called with NULL. */
	void (*discard)(struct layer *l, void *old);
	/* Reset the counters, together with those of the mount: under the
	 * lock. */
	void (*reset)(struct layer *l);
	/* Stats other than numbers: into the mount's stats or the layer's part.
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
static inline bool layer_admits(struct layer *l, uint64_t key, unsigned tier)
{
	return l->admits->ops->admits(l->admits, key, tier);
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
