/* SPDX-License-Identifier: MIT */
/* The client side of a connection to gpemu-gpud. For one thread. */
#ifndef GPEMU_EMU_GPU_GPUD_CLIENT_H
#define GPEMU_EMU_GPU_GPUD_CLIENT_H

#include <stddef.h>
#include <sys/types.h>

#include "common/err.h"
#include "emu/gpu/gpud_proto.h"

/* Timeout, wall time. arbitrary: a running server answers much faster */
enum { GPUD_PATIENCE_S = 10 };

struct gpud_client {
	int fd;
	struct gpud_welcome server;
	char *path;
	char *buf; /* received bytes; messages are decoded in place */
	size_t start, n, size;
	unsigned patience_s;
};

/* Where gpemu-gpud listens by default: gpemu-gpud.sock in $XDG_RUNTIME_DIR;
 * without that /run/gpemu-gpud.sock for root, /tmp/gpemu-UID/gpud.sock for
 * others. Malloc'ed. */
char *gpud_default_path(void);
/*
 * The server that this process was given with its GPUs, by a device plugin or
 * a prolog: the first in $GPEMU_GPU_SERVER, which has colons between them, and
 * $GPEMU_SERVER_USER, the user that it runs as. Each is malloc'ed, or NULL: not
 * set. -ENOMEM with a text.
 */
int gpud_given(char **ret_path, char **ret_user, struct err *err);
/* A user by name or number. -EINVAL: there is none. */
int gpud_user(const char *name, uid_t *ret);

/*
 * Connect and wait for the WELCOME. The server must run as this user, as root,
 * or as `user` (name or number, NULL: no other). -ENODEV: no server listens
 * there; -EACCES: a server of another user, or access denied; -EINVAL: `user`
 * is unknown; -EPROTO and errors of gpud_decode: not a gpemu-gpud; -EAGAIN: no
 * answer within GPUD_PATIENCE_S; each with a text. Call gpud_close in any case.
 */
int gpud_open(const char *path, const char *user, struct gpud_client *ret,
	      struct err *err);
/*
 * The same for an event loop: never waits. gpud_receive returns the WELCOME
 * first, and -EAGAIN where it would wait for ret->fd to become readable;
 * gpud_send fails if the server does not read.
 */
int gpud_begin(const char *path, const char *user, struct gpud_client *ret,
	       struct err *err);
/* The same with a patience of `seconds`, see gpud_patience. */
int gpud_open_within(const char *path, const char *user, unsigned seconds,
		     struct gpud_client *ret, struct err *err);
void gpud_close(struct gpud_client *c);
/* Timeout of gpud_receive and gpud_send in wall seconds, after which they
 * return -EAGAIN; 0: none. Initially GPUD_PATIENCE_S. */
int gpud_patience(struct gpud_client *c, unsigned seconds, struct err *err);

/* 0 or -errno with a text; -ECONNRESET: the server closed the connection. */
int gpud_send(struct gpud_client *c, const struct gpud_msg *m, struct err *err);
/*
 * Wait for the next message. A GPUD_ERROR is returned as its negative errno
 * and text. What *ret borrows is valid until the next call.
 */
int gpud_receive(struct gpud_client *c, struct gpud_msg *ret, struct err *err);
/* From any thread: waiting and later calls fail with -ECONNRESET. */
void gpud_stop(struct gpud_client *c);

#endif
