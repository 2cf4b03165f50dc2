/* SPDX-License-Identifier: MIT */
/*
 * Hits without a round trip for each read. When a whole file is cached, the
 * reply to its open names a backing file, and the kernel then reads from that
 * by itself (FUSE passthrough, Linux 6.9; needs CAP_SYS_ADMIN). The backing
 * file is the source's own file, so the page cache serves the bytes.
 *
 * The kernel requires that overlapping opens of an inode have one mode and one
 * backing file, and fails others with EIO. So the first open decides for all
 * opens that overlap it:
 *
 *	closed --open, cached----> passthrough --last close--> closed
 *	       --open, not cached-> plain       --last close--> closed
 *
 * An open of a file in passthrough mode that the cache has evicted meanwhile
 * is a miss: it waits for the device, and is then passed through.
 *
 * Making a backing file opens the source's file, which may block. So it is not
 * done under the lock, which the timing thread takes, nor by that thread: an
 * open that the timing thread answers is plain, unless a backing file exists.
 *
 * Source: Documentation/filesystems/fuse/fuse-passthrough.rst, fs/fuse/iomode.c
 * of Linux.
 */
#ifndef GPEMU_FS_FRONT_PASSTHROUGH_H
#define GPEMU_FS_FRONT_PASSTHROUGH_H

#include <pthread.h>
#include <stdbool.h>

#include "fs/server/server.h"

struct open_node;

struct passthrough {
	struct server *server;
	int device_fd; /* of the FUSE session */
	bool on;       /* atomic; cleared at the first refusal */
	bool wanted;   /* warn of a refusal */
	pthread_mutex_t lock;
	struct open_node *open;	 /* open nodes; under lock */
	struct open_node *spare; /* for reuse: opens are frequent */
};

/* Off until passthrough_enable. */
void passthrough_init(struct passthrough *p, struct server *server,
		      bool wanted);
void passthrough_fini(struct passthrough *p);
/* The kernel accepts backing files. */
void passthrough_enable(struct passthrough *p, int device_fd);

/*
 * Close the device, after the last request: the kernel ends the connection,
 * and all calls that wait on it, only when its last descriptor is closed.
 */
void passthrough_disable(struct passthrough *p);

enum open_mode {
	OPEN_PLAIN,
	OPEN_PASSTHROUGH, /* a hit, counted */
	OPEN_MISS,	  /* passed through once its bytes are read */
};

/*
 * The mode of this open; *ret_backing_id for all but OPEN_PLAIN. Each call
 * needs one passthrough_close. `may_wait`: the caller may block on the
 * source's file system.
 * -ENOMEM.
 */
int passthrough_open(struct passthrough *p, uint32_t node, bool may_wait,
		     int *ret_backing_id);
void passthrough_close(struct passthrough *p, uint32_t node);

#endif
