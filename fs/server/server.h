/* SPDX-License-Identifier: MIT */
/*
 * The file server behind the mount, without FUSE: opens, reads and metadata
 * operations go in, and are answered from another thread when the emulated
 * device says so. Nothing here blocks for a device. On its way a request meets
 * a stack of layers (fs/server/layer.h).
 *
 * A hit or a miss is counted once per object (a file, or a 4 MiB extent of a
 * large one) and open, whatever sizes the reader asks in. Reads of nothing
 * and beyond the end are free. What a hit saves is the read and the open;
 * lookups and directory listings always cost what the profile says.
 *
 * With groups one read of the device brings all files of a group: the first
 * read of a member that was brought along is a hit.
 */
#ifndef GPEMU_FS_SERVER_SERVER_H
#define GPEMU_FS_SERVER_SERVER_H

#include <jansson.h>
#include <sys/uio.h>

#include "common/conf/conf.h"
#include "common/units.h"
#include "fs/cache/policy.h"
#include "fs/cache/tier.h"
#include "fs/device/calibrate.h"
#include "fs/device/fetch.h"
#include "fs/source/group.h"
#include "fs/server/object.h"
#include "fs/source/source.h"

struct server;
struct trace;

struct server_config {
	struct tick *tick; /* borrowed, as is all below */
	const struct source_ops *source;
	void *source_state;
	const struct tree *tree;
	const char *storage; /* profile name or path */
	const char *cache_policy;
	struct units_capacity cache_size;
	/* Instead of these: caches behind each other, each of one policy and
	 * one size. NULL or empty: a single cache. */
	const struct tiers *tiers;
	enum tier_admit admit;
	/* The caches hold only decisions: each reader gets its bytes from the
	 * source, and the sizes may exceed the memory. */
	bool bytes_in_source;
	bool cache_metadata; /* the size also holds what is kept of each */
	uint64_t seed;
	const char *layers; /* words from the top; NULL: LAYERS_DEFAULT */
	const struct group_map *groups; /* NULL: files are read alone */
	struct trace *trace;		/* NULL: none is written */
	/* of members that were read and not asked for yet; 0: 64 MiB, or two
	 * of the largest groups where that is more */
	uint64_t group_buffer;
	/* Bytes of files beside the cache's (fs/server/budget.h); 0: 256 MiB,
	 * or an eighth of the memory where that is less. */
	uint64_t memory;
};

/* May a stack be made of these words, from the top, with commas between?
 * -EINVAL with a text. */
int server_check_layers(const char *words, struct err *err);

/* The stack as it is by default. A layer that the configuration gives nothing
 * to do is not linked. */
#define LAYERS_DEFAULT "trace,fault,cache,group,device,source"

/* -EINVAL (unknown policy, layers in an order that makes no sense, cache larger
 * than memory, a bad profile),
 * -ENOENT, -ENOMEM, -EAGAIN; always with a text. */
int server_new(const struct server_config *config, struct server **ret,
	       struct err *err);
/*
 * End what is pending, with -ECONNABORTED, and wait for the calls of other
 * threads that are inside: when this returns all were answered. Calls that come
 * later, or meanwhile, find the door closed: reads and metadata operations are
 * answered -ECONNABORTED, as are all changes; looks (stats, readlink,
 * server_peek_whole and their like) go on until server_free. Not to be called
 * from a reply.
 */
void server_stop(struct server *s);
/* Stops first. All handles must be closed, and nobody may call any more. */
void server_free(struct server *s);

/* Bytes that the cache may hold now. */
uint64_t server_capacity(struct server *s);
const struct tree *server_tree(const struct server *s);
struct tick *server_tick(const struct server *s);
/* The target of a symbolic link. 0 or -errno. */
int server_readlink(struct server *s, uint32_t node, char *buf, size_t n);

/* Where on the device a file lies (device_place); false: it has no places, or
 * this is no file. */
bool server_place(struct server *s, uint32_t node, uint64_t *ret);

/* An open file. */
struct handle;
/* NULL: no memory, or too much of it for open files of more than 256 MiB, whose
 * extents are counted. */
struct handle *server_open(struct server *s, uint32_t node);
void server_close(struct server *s, struct handle *h);

/* One read; lives until `reply` was called, which may be before server_read
 * returns, and which owns the struct again. */
struct read_part {
	struct object *object;
	size_t offset, bytes; /* in the object */
	struct read_request *request;
	struct read_part *next; /* waiting for the same object */
	uint32_t number;	/* in the request */
	bool hit;
	/* place among all that the books saw, from 1; 0: it was not counted */
	uint64_t seq;
	uint64_t deadline; /* of the fetch that it waited for; 0: none */
};

/* a read of up to 4 MiB touches two extents at most */
enum { READ_PARTS = 2 };

struct read_request {
	/* filled in by the caller */
	struct handle *handle;
	uint64_t offset;
	size_t bytes; /* <= OBJECT_EXTENT */
	uint64_t arrival;
	/* Who asks, different for all that are pending, as server_interrupt
	 * is told; NULL: no fault is for this one. */
	void *client;
	/* The bytes (n_iov 0: end of file), or error < 0. The memory is valid
	 * until it returns. */
	void (*reply)(struct read_request *r, int error,
		      const struct iovec *iov, int n_iov);
	/* private */
	struct server *server;
	struct read_part parts[READ_PARTS];
	int n_parts;
	int pending; /* atomic */
	int error;
	void (*ready)(struct read_request *r); /* nothing is pending */
	bool later;			       /* see struct fetch */
	bool again;			       /* some bytes are in no object */
	struct fetch raw; /* the whole of it: if `again`, or past the cache */
	struct budget_wait room; /* for its bytes */
};

void server_read(struct server *s, struct read_request *r);

/*
 * Charge a metadata operation: f->done is called when the device is done with
 * it. Set f->op, node, arrival and done. An open of a file whose first object
 * is cached is free. f->error, when done, is a fault's.
 */
void server_metadata(struct server *s, struct fetch *f);
/* It is being answered, with an error < 0 or not. */
void server_metadata_answered(struct server *s, const struct fetch *f,
			      int error);

/* Must each read of this file come here (TREE_NONE: of any file; cheap)?
 * Others the kernel may read by itself. Where none must, no client waits so
 * that a signal should end it. */
bool server_watches(struct server *s, uint32_t node);
/* How to learn whether a client was told to give up; NULL: none ever is. */
void server_on_interrupt(struct server *s,
			 bool (*is_interrupted)(void *client));
/* The client gives up: what a layer holds of it ends with -EINTR. */
void server_interrupt(struct server *s, void *client);
/* --- passthrough (fs/front/passthrough.h)
 * -------------------------------------- */

/* The file's object with a reference, if the whole file is one object that is
 * cached and there; else NULL. Does not count. */
struct object *server_peek_whole(struct server *s, uint32_t node);
/* Count an access to a file of one object, if it is cached; else false, and
 * nothing is counted. */
bool server_count_hit(struct server *s, uint32_t node);
/* A descriptor of the source's file; -errno, -EOPNOTSUPP without one. */
int server_open_source(struct server *s, uint32_t node);
/* Why hits are answered by reply, static; NULL: they are passed through. */
void server_set_hit_path(struct server *s, const char *why_reply);
/* Whom to tell that an object with a backing file is gone; fn NULL: nobody. */
void server_on_backing_close(struct server *s, void (*fn)(int id, void *ctx),
			     void *ctx);

/* How a command's wish to have an object cached ended. */
enum layer_warmth { WARM_LOADED, WARM_CACHED, WARM_REJECTED, WARM_FAILED };
/* Cache an extent, where that takes no eviction, and read its bytes, on this
 * thread; no emulated time, and not counted. */
enum layer_warmth server_warm(struct server *s, uint32_t node, uint32_t extent);
/* Of a file: its size in objects. */
uint32_t server_extents(const struct server *s, uint32_t node);

/* What a request costs without a device, wall ns (fs/device/calibrate.h). */
void server_set_round_trip(struct server *s, const struct round_trip *trip);

/* --- control and stats -------------------------------------------------- */

/*
 * Live changes. -EINVAL, -ENOENT, -ENOMEM, -ECONNABORTED (stopped) with a text;
 * then nothing has changed.
 */
/* The next epoch begins. */
int server_epoch(struct server *s, struct err *err);
/* All counters and epochs back to zero; the cache stays as it is. */
int server_reset(struct server *s, struct err *err);
/* An empty cache, whose policy remembers nothing; the counters go on. */
int server_drop_cache(struct server *s, struct err *err);
/* A new policy or capacity starts with an empty cache. */
int server_set_cache(struct server *s, const char *policy,
		     const struct units_capacity *size, struct err *err);
/* The same of one of several tiers, from 0; all of them start empty. */
int server_set_tier(struct server *s, unsigned tier, const char *policy,
		    const struct units_capacity *size, struct err *err);
int server_set_storage(struct server *s, const char *storage, struct err *err);
/* A piece of the groups file (group_map_read). */
int server_read_groups(const struct server *s, uint64_t offset, size_t n,
		       char **ret, size_t *ret_n);
/* The stats file, as design and manual page describe it. NULL: no memory. */
json_t *server_stats(struct server *s);

#endif
