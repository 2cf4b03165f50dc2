/* SPDX-License-Identifier: MIT */
/* Unix sockets at a path, of servers. */
#ifndef GPEMU_COMMON_LOCAL_SOCKET_H
#define GPEMU_COMMON_LOCAL_SOCKET_H

#include <stdbool.h>
#include <sys/types.h>
#include <sys/un.h>

#include "common/err.h"

/* The file of a socket that is ours; zeros: none. */
struct local_socket {
	dev_t dev;
	ino_t ino;
};

/* -ENAMETOOLONG with a text. */
int local_socket_address(const char *path, struct sockaddr_un *ret,
			 struct err *err);

/*
 * A socket that listens at `path`, without blocking, whose file has this mode.
 * Whoever sees the file can connect: it is made as .NAME and gets its name when
 * it listens. A dead server's file is replaced, and nothing else. Of several
 * that start at once, at most one has the path.
 *
 * Returns the descriptor. -EADDRINUSE (another server, or no socket) and the
 * like, with a text.
 */
int local_socket_listen(const char *path, mode_t mode, struct local_socket *ret,
			struct err *err);

/* Is that file still at the path? */
bool local_socket_there(const char *path, const struct local_socket *s);

/* Remove it, unless another server's is there by now: call it before the
 * descriptor is closed, after which another file can have the same number. */
void local_socket_leave(const char *path, const struct local_socket *s);

#endif
