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

#include "fs/device/calibrate.h"
#include "fs/server/handle.h"
#include "fs/server/layer.h"
#include "fs/server/object.h"
#include "fs/server/request.h"
#include "fs/server/server_change.h"
#include "fs/server/server_config.h"
#include "fs/server/server_stats.h"

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
/* The device's profile at the start. */
const struct storage_profile *server_storage(const struct server *s);
/* How long a client's kernel keeps names of it, emulated ns; false: as long as
 * it has memory. Names that it has keep the time of the profile before. */
bool server_keeps_names(struct server *s, uint64_t *ret);
/* What the device moves for so many bytes of the writable folder. */
uint64_t server_device_bytes(const struct server *s, uint64_t bytes);
/* The target of a symbolic link. 0 or -errno. */
int server_readlink(struct server *s, uint32_t node, char *buf, size_t n);

/* The place of a file on the device (device_place); false: the device has no
 * places, or this is no file. */
bool server_place(struct server *s, uint32_t node, uint64_t *ret);
/* The number of the node, of several, whose cache holds the file (its first
 * extent) for all; false: no node does. */
bool server_owner(struct server *s, uint32_t node, uint32_t *ret);

/* `r` must live until `reply`, which may be called before this returns and
 * gives the struct back. */
void server_read(struct server *s, struct read_request *r);
/* In `reply`: when the device completed the read, 0: it was free. */
uint64_t server_read_deadline(const struct read_request *r);

/*
 * Charge a metadata operation: f->done is called when the device has completed
 * it. Set f->op, node, arrival and done. An open of a file whose first object
 * is cached is free. On completion f->error is that of a fault.
 */
void server_metadata(struct server *s, struct fetch *f);
/*
 * The same for an operation on a file that is not of the tree: set also
 * f->path, offset, bytes and work (NULL: none). Faults apply to it, the device
 * charges it, and no layer between keeps anything of it. f->error is then that
 * of a fault or of the work.
 */
void server_operate(struct server *s, struct fetch *f);
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
/* Cache an extent if that needs no eviction, and read its bytes on this thread;
 * no emulated time, and not counted. */
enum layer_warmth server_warm(struct server *s, uint32_t node, uint32_t extent);
/* The size of a file in objects. */
uint32_t server_extents(const struct server *s, uint32_t node);

/* What a request costs without a device, wall ns (fs/device/calibrate.h). */
void server_set_round_trip(struct server *s, const struct round_trip *trip);

/* A part of the groups file (group_map_read). */
int server_read_groups(const struct server *s, uint64_t offset, size_t n,
		       char **ret, size_t *ret_n);

#endif
