/* SPDX-License-Identifier: MIT */
/*
 * The FUSE front end: translates between the kernel's requests (libfuse's
 * low-level API) and the server. Files are opened with direct I/O, so that
 * the kernel keeps no second, unmodelled cache of their bytes. Names and
 * attributes never change, so the kernel may cache them without limit.
 */
#ifndef GPEMU_FS_FRONT_FRONT_H
#define GPEMU_FS_FRONT_FRONT_H

#include "fs/control/ctl.h"

struct front;
struct jobs;

/* How a reader gets the bytes of a cached file. */
enum hit_path {
	HIT_PATH_AUTO,	      /* passthrough where supported, else reply */
	HIT_PATH_REPLY,	      /* each read is a request to this process */
	HIT_PATH_PASSTHROUGH, /* as auto; warns where it is unsupported */
};
/* "auto", "reply" or "passthrough". */
int hit_path_parse(const char *s, enum hit_path *ret, struct err *err);

/* How requests reach this process. */
enum front_transport {
	TRANSPORT_AUTO,	 /* io_uring where the kernel enables it, else dev */
	TRANSPORT_DEV,	 /* read from /dev/fuse */
	TRANSPORT_URING, /* as auto; warns where it is unavailable */
};
/* "auto", "dev" or "uring". */
int front_transport_parse(const char *s, enum front_transport *ret,
			  struct err *err);

struct front_config {
	struct server *server;
	struct ctl *ctl;
	struct jobs *jobs;	/* for commands that may wait */
	const char *source;	/* shown as the device in mount(8) */
	const char *mountpoint; /* absolute */
	const char *options;	/* mount options "a,b=c", or NULL */
	enum hit_path hit_path;
	enum front_transport transport;
	/* called once, when the mount is usable */
	void (*ready)(void *ctx);
	void *ctx;
};

/* Check the mount options by mounting in a temporary folder; unmounted on
 * return. Errors as front_new. */
int front_try(const struct front_config *config, struct err *err);
/*
 * Mount. -EINVAL (options), -ENODEV, -EPERM, -EBUSY; with a text.
 */
int front_new(const struct front_config *config, struct front **ret,
	      struct err *err);
/* Serve until unmounted or stopped. 0 or -errno. */
int front_loop(struct front *f);
/*
 * End front_loop, from another thread; returns when the loop has ended, or
 * will not begin.
 */
void front_stop(struct front *f);
/* Unmount, if still mounted: no new request arrives after this. */
void front_unmount(struct front *f);
/*
 * Unmount, and end the connection: calls that still wait on the mount return,
 * in all threads. Pending requests must have been answered before
 * (server_stop, jobs_stop). NULL is allowed, as below.
 */
void front_disconnect(struct front *f);
/* Disconnects first. */
void front_free(struct front *f);

#endif
