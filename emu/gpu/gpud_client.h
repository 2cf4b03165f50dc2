/* SPDX-License-Identifier: MIT */
/* A client's end of the connection to gpemu-gpud. For one thread. */
#ifndef GPEMU_EMU_GPU_GPUD_CLIENT_H
#define GPEMU_EMU_GPU_GPUD_CLIENT_H

#include <stddef.h>
#include <sys/types.h>

#include "common/err.h"
#include "emu/gpu/gpud_proto.h"

/* What a server that runs needs by far less for, wall time. arbitrary */
enum { GPUD_PATIENCE_S = 10 };

struct gpud_client {
	int fd;
	struct gpud_welcome server;
	char *path;
	char *buf; /* what came; messages are decoded in place */
	size_t start, n, size;
	unsigned patience_s;
};

/* Where gpemu-gpud listens by default: gpemu-gpud.sock in $XDG_RUNTIME_DIR;
 * without that /run/gpemu-gpud.sock for root, /tmp/gpemu-UID/gpud.sock for
 * others. Malloc'ed. */
char *gpud_default_path(void);
/* A user by name or number. -EINVAL: there is none. */
int gpud_user(const char *name, uid_t *ret);

/*
 * Connect and be welcomed. The server must run as this user, as root, or as
 * `user` (name or number, NULL: nobody else). -ENODEV: nobody listens there;
 * -EACCES: another user's server, or not for this user; -EINVAL: `user` is
 * unknown; -EPROTO and what gpud_decode returns:
 * somebody else does; -EAGAIN: it has not answered for GPUD_PATIENCE_S; each
 * with a text. gpud_close in either case.
 */
int gpud_open(const char *path, const char *user, struct gpud_client *ret,
	      struct err *err);
void gpud_close(struct gpud_client *c);
/* For how many wall seconds gpud_receive and gpud_send wait before they return
 * -EAGAIN; 0: for ever. GPUD_PATIENCE_S after gpud_open. */
int gpud_patience(struct gpud_client *c, unsigned seconds, struct err *err);

/* 0 or -errno with a text; -ECONNRESET when the server went away. */
int gpud_send(struct gpud_client *c, const struct gpud_msg *m, struct err *err);
/*
 * Wait for the next message. A GPUD_ERROR is returned as its negative errno
 * and text. What *ret borrows is valid until the next call.
 */
int gpud_receive(struct gpud_client *c, struct gpud_msg *ret, struct err *err);
/* From any thread: what waits, and all that comes after, fails with
 * -ECONNRESET. */
void gpud_stop(struct gpud_client *c);

#endif
