/* SPDX-License-Identifier: MIT */
/*
 * Hits without a round trip for each read: when a file is cached as a whole,
 * its open is answered with a backing file, from which the kernel then reads
 * by itself (FUSE passthrough, Linux 6.9; needs CAP_SYS_ADMIN). The backing
 * file is the source's own, so what serves the bytes is the page cache.
 *
 * The kernel wants all opens of an inode that overlap in time to be of one
 * mode, with one backing file, and answers EIO otherwise. So the first open
 * decides for all that overlap it:
 *
 *	closed --open, cached----> passthrough --last close--> closed
 *	       --open, not cached-> plain       --last close--> closed
 *
 * An open of a file that is in passthrough mode, but that the cache has let go
 * meanwhile, is a miss: it waits for the device, and is then passed through.
 *
 * To make a backing file the source's file is opened, which may take long: not
 * under the lock, which the timing thread takes, and not by that thread. An
 * open that it answers is plain, unless the file has one already.
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
	bool on;       /* atomic; off at the first refusal */
	bool wanted;   /* a refusal is warned of */
	pthread_mutex_t lock;
	struct open_node *open; /* nodes open now; under lock */
};

/* Off until passthrough_enable. */
void passthrough_init(struct passthrough *p, struct server *server,
		      bool wanted);
void passthrough_fini(struct passthrough *p);
/* The kernel takes backing files. */
void passthrough_enable(struct passthrough *p, int device_fd);

/*
 * Let go of the device, when no request comes any more: the kernel ends the
 * connection, and every wait on it, only when nobody holds it open.
 */
void passthrough_disable(struct passthrough *p);

enum open_mode {
	OPEN_PLAIN,
	OPEN_PASSTHROUGH, /* a hit, counted */
	OPEN_MISS,	  /* to be passed through, once its bytes were read */
};

/*
 * How this open is to be answered; *ret_backing_id for all but OPEN_PLAIN.
 * Each call is undone by one passthrough_close. `may_wait`: the caller may wait
 * for the source's file system.
 * -ENOMEM.
 */
int passthrough_open(struct passthrough *p, uint32_t node, bool may_wait,
		     int *ret_backing_id);
void passthrough_close(struct passthrough *p, uint32_t node);

#endif
