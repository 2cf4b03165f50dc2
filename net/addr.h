/* SPDX-License-Identifier: MIT */
/* Addresses HOST:PORT: a name, 127.0.0.1 or [::1], and a port from 1 to
 * 65535. */
#ifndef GPEMU_NET_ADDR_H
#define GPEMU_NET_ADDR_H

#include <stdbool.h>
#include <sys/socket.h>

#include "common/err.h"

struct addr {
	char *text; /* as given, owned */
	struct sockaddr_storage at;
	socklen_t n;
};

/* Check the form of `text`. -EINVAL with a text. */
int addr_check(const char *text, struct err *err);
/* Resolve it, which may wait for a name server. -EINVAL, -ENOMEM, -EAGAIN (the
 * name does not resolve now); with a text. */
int addr_find(const char *text, struct addr *ret, struct err *err);
void addr_fini(struct addr *a);
/* Can only this machine reach it? */
bool addr_is_loopback(const struct addr *a);
/* A socket that listens there, without blocking. -EADDRINUSE and the like, with
 * a text. */
int addr_listen(const struct addr *a, struct err *err);
/* A socket that connects to it, without blocking. -errno. */
int addr_dial(const struct addr *a);
/* Options of a connection: no delay of small messages, and keep-alive, which
 * notices a machine that is gone. */
void addr_tune(int fd);

#endif
