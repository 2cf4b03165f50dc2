/* SPDX-License-Identifier: MIT */
/*
 * The bytes of one GET, read through the stack piece by piece: the device
 * charges the first piece as a request and the others as its bytes. A piece is
 * requested as soon as the one before has come and there is room for it, so a
 * slow client holds a few pieces at most.
 *
 * A connection that finds nothing is suspended until there is something: no
 * thread waits.
 */
#ifndef GPEMU_S3_BODY_H
#define GPEMU_S3_BODY_H

#include <microhttpd.h>

#include "fs/server/server.h"

struct body;

struct body_of {
	struct server *server;
	struct MHD_Connection *connection;
	uint32_t node;
	uint64_t from, end; /* not empty */
	uint64_t arrival;
	/* of an object that was put: its key, and its file; NULL: `node` is one
	 * of the tree */
	const char *path;
	int fd;
};

/* Begins to read at once; takes of->fd in any case. NULL: no memory. */
struct body *body_new(const struct body_of *of);
/* The client has gone, or has all of it. NULL is allowed. */
void body_free(struct body *b);

/* Has the first piece come, or an error (*ret_error < 0)? Else the connection
 * is suspended. On a thread of the connection, as the next. */
bool body_ready(struct body *b, int *ret_error);
/* A response with the body, which it owns from then on; NULL: no memory. */
struct MHD_Response *body_response(struct body *b);

#endif
