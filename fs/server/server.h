/* SPDX-License-Identifier: MIT */
/*
 * The file server behind the mount, without FUSE. It takes opens, reads and
 * metadata operations, and answers them from another thread at the time that
 * the emulated device gives. It never blocks for the device. A request passes a
 * stack of layers (fs/server/layer.h).
 *
 * A hit or miss is counted once per object (a file, or a 4 MiB extent of a
 * large one), open and epoch, whatever the sizes of the reads. Empty reads and
 * reads beyond the end are free. A hit saves the read and the open; lookups and
 * directory listings always cost what the profile says.
 *
 * With groups one read of the device fetches all files of a group: the first
 * read of a prefetched member is a hit.
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

struct future;
struct peer_net;
struct server;
struct trace;

struct server_config {
	struct tick *tick; /* borrowed, as are all pointers below */
	const struct source_ops *source;
	void *source_state;
	const struct tree *tree;
	const char *storage; /* profile name or path */
	const char *cache_policy;
	struct units_capacity cache_size;
	/* Instead of the two above: several caches behind each other, each with
	 * one policy and one size. NULL or empty: a single cache. */
	const struct tiers *tiers;
	enum tier_admit admit;
	/* The caches hold no bytes: each reader reads the source, and the sizes
	 * may exceed the memory. */
	bool bytes_in_source;
	bool cache_metadata; /* metadata of each object counts, too */
	uint64_t seed;
	const char *layers; /* words from the top; NULL: LAYERS_DEFAULT */
	const struct group_map *groups; /* NULL: each file is read alone */
	struct trace *trace;		/* NULL: no trace */
	/* The nodes of a partitioned cache; NULL: this one is alone. */
	const struct peer_net *peers;
	/* bytes of prefetched members before their first read; 0: 64 MiB, or
	 * two of the largest groups where that is more */
	uint64_t group_buffer;
	/* Bytes of objects fetched before they are requested, and how many of
	 * them are in flight at once; 0: none are. */
	uint64_t prefetch_bytes;
	uint64_t prefetch_depth;
	/* Bytes of files outside the cache (fs/server/budget.h); 0: 256 MiB, or
	 * an eighth of the memory where that is less. */
	uint64_t memory;
};

/* Check the words of a stack, from the top, separated by commas. -EINVAL with a
 * text. */
int server_check_layers(const char *words, struct err *err);

/* The default stack. A layer with nothing to do in the configuration is not
 * linked. */
#define LAYERS_DEFAULT "trace,fault,prefetch,cache,group,peer,device,source"

/* -EINVAL (unknown policy, layers in an impossible order, cache larger than
 * memory, bad profile), -ENOENT, -ENOMEM, -EAGAIN; always with a text. */
int server_new(const struct server_config *config, struct server **ret,
	       struct err *err);
/*
 * End all pending operations with -ECONNABORTED, and wait for calls of other
 * threads that are inside: on return all were answered. From then on the gate
 * is closed: reads, metadata operations and changes get -ECONNABORTED. Queries
 * (stats, readlink, server_place and the like) work until server_free.
 * Must not be called from a reply.
 */
void server_stop(struct server *s);
/* Stops first. All handles must be closed; no other call may follow. */
void server_free(struct server *s);

/* The present capacity of all caches, bytes, and their number. */
uint64_t server_capacity(struct server *s, unsigned *ret_n);
const struct tree *server_tree(const struct server *s);
struct tick *server_tick(const struct server *s);
/* The target of a symbolic link. 0 or -errno. */
int server_readlink(struct server *s, uint32_t node, char *buf, size_t n);

/* The place of a file on the device (device_place); false: the device has no
 * places, or this is no file. */
bool server_place(struct server *s, uint32_t node, uint64_t *ret);
/* The number of the node, of several, whose cache holds the file (its first
 * extent) for all; false: no node does. */
bool server_owner(struct server *s, uint32_t node, uint32_t *ret);

/* An open file. */
struct handle;
/* NULL: no memory, or too many open files of more than 256 MiB, whose extents
 * are counted in memory. */
struct handle *server_open(struct server *s, uint32_t node);
void server_close(struct server *s, struct handle *h);

/* One read; must live until `reply`, which may be called before server_read
 * returns and gives the struct back. */
struct read_part {
	struct object *object;
	size_t offset, bytes; /* in the object */
	struct read_request *request;
	struct read_part *next; /* list of waiters for the same object */
	uint32_t number;	/* in the request */
	bool hit;
	/* place in the order of counted accesses, from 1; 0: it was not
	 * counted */
	uint64_t seq;
	uint64_t deadline; /* of the fetch it waited for; 0: none */
};

/* a read of up to 4 MiB touches two extents at most */
enum { READ_PARTS = 2 };

struct read_request {
	/* filled in by the caller */
	struct handle *handle;
	uint64_t offset;
	size_t bytes; /* <= OBJECT_EXTENT */
	uint64_t arrival;
	/* The requester, unique among pending requests, as passed to
	 * server_interrupt; NULL: no fault applies to this read. */
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
	struct fetch raw; /* whole request: if `again`, or without cache */
	struct budget_wait room; /* memory for its bytes */
};

void server_read(struct server *s, struct read_request *r);

/*
 * Charge a metadata operation: f->done is called when the device has completed
 * it. Set f->op, node, arrival and done. An open of a file whose first object
 * is cached is free. On completion f->error is that of a fault.
 */
void server_metadata(struct server *s, struct fetch *f);
/* It is being answered; error is < 0 or 0. */
void server_metadata_answered(struct server *s, const struct fetch *f,
			      int error);

/* Must each read of this file come here (TREE_NONE: of any file; cheap)? If
 * not, the kernel may read the file itself. If no file must, no client waits
 * for anything that a signal should end. */
bool server_watches(struct server *s, uint32_t node);
/* How to learn whether a client was interrupted; NULL: clients never are. */
void server_on_interrupt(struct server *s,
			 bool (*is_interrupted)(void *client));
/* The client gives up: what a layer holds for it ends with -EINTR. */
void server_interrupt(struct server *s, void *client);
/* --- passthrough (fs/front/passthrough.h) --------------------------------- */

/* The file's object with a reference, if the whole file is one object that is
 * cached and READY; else NULL. Counted as a hit if it has a backing file:
 * *ret_backing_id > 0. */
struct object *server_hit_whole(struct server *s, uint32_t node,
				int *ret_backing_id);
/* Count an access to a file of one object, if it is cached; false: it is not,
 * and nothing is counted. */
bool server_count_hit(struct server *s, uint32_t node);
/* A descriptor of the source's file; -errno; -EOPNOTSUPP: it has none. */
int server_open_source(struct server *s, uint32_t node);
/* Why hits are answered by a reply, a static text; NULL: the kernel can pass
 * them through. true: they are, as no cache prevents it. */
bool server_set_hit_path(struct server *s, const char *why_reply);
/* Callback for the end of an object with a backing file; fn NULL: none. */
void server_on_backing_close(struct server *s, void (*fn)(int id, void *ctx),
			     void *ctx);

/* The outcome of a command to cache an object. */
enum layer_warmth { WARM_LOADED, WARM_CACHED, WARM_REJECTED, WARM_FAILED };
/* Cache an extent if that needs no eviction, and read its bytes on this thread;
 * no emulated time, and not counted. */
enum layer_warmth server_warm(struct server *s, uint32_t node, uint32_t extent);
/* The size of a file in objects. */
uint32_t server_extents(const struct server *s, uint32_t node);

/* What a request costs without a device, wall ns (fs/device/calibrate.h). */
void server_set_round_trip(struct server *s, const struct round_trip *trip);

/* --- control and stats -------------------------------------------------- */

/*
 * Changes of a running server. -EINVAL, -ENOENT, -ENOMEM, -ECONNABORTED
 * (stopped) with a text; then nothing has changed.
 */
/* The next epoch begins. */
int server_epoch(struct server *s, struct err *err);
/* Reset all counters and epochs; the cache stays as it is. */
int server_reset(struct server *s, struct err *err);
/* Empty the cache and the policy's history; the counters continue. */
int server_drop_cache(struct server *s, struct err *err);
/* A new policy or capacity starts with an empty cache. */
int server_set_cache(struct server *s, const char *policy,
		     const struct units_capacity *size, struct err *err);
/* Another capacity; what fits stays cached, and the policy forgets its history.
 * -EINVAL, too: with peers or a trace, which know one capacity. */
int server_resize_cache(struct server *s, const struct units_capacity *size,
			struct err *err);
/* The same for one of several tiers, from 0; all tiers start empty. */
int server_set_tier(struct server *s, unsigned tier, const char *policy,
		    const struct units_capacity *size, struct err *err);
int server_set_storage(struct server *s, const char *storage, struct err *err);
/* The device's link has at most so many bytes per second, whatever its profile
 * says; 0: what that says. -EINVAL: less than a kB. */
int server_set_bandwidth(struct server *s, uint64_t bytes_per_s,
			 struct err *err);
/*
 * A loader announces its accesses (common/system/future.h): `n` bytes at
 * `offset` of the list. Once it is complete, objects are placed and fetched
 * ahead by it. `writer` tells one open file from another. -E2BIG; -EBUSY:
 * another writer has begun a list since; -EOPNOTSUPP: nothing would use it.
 */
int server_future(struct server *s, const void *writer, uint64_t offset,
		  const void *bytes, size_t n, struct err *err);
/* The writer has closed the file. -EINVAL: its list is not complete. */
int server_future_end(struct server *s, const void *writer, struct err *err);
/* A part of the groups file (group_map_read). */
int server_read_groups(const struct server *s, uint64_t offset, size_t n,
		       char **ret, size_t *ret_n);
/* The content of the stats file; see the manual page. NULL: no memory. */
json_t *server_stats(struct server *s);

#endif
