/* SPDX-License-Identifier: MIT */
/* What a front end is made of. */
#ifndef GPEMU_FS_FRONT_FRONT_CONFIG_H
#define GPEMU_FS_FRONT_FRONT_CONFIG_H

#include "fs/control/ctl.h"

struct jobs;
struct upper;

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
	struct upper *upper;	/* the writable folder, or NULL */
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

#endif
