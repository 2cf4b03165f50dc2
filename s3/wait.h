/* SPDX-License-Identifier: MIT */
/*
 * An operation of the device for one request, while which the client may go.
 * Whoever finds it unfinished suspends the connection; its end resumes it.
 */
#ifndef GPEMU_S3_WAIT_H
#define GPEMU_S3_WAIT_H

#include <microhttpd.h>

#include "fs/server/server.h"

struct wait;

struct wait_for {
	struct server *server;
	struct MHD_Connection *connection;
	enum storage_op op;
	uint32_t node;
	const char *path; /* of an object that was put; NULL: of the tree */
	uint64_t bytes, arrival;
	/* The real operation, on a thread of the server: 0 or -errno. `ctx`
	 * must live until the end. NULL: there is none. */
	int (*work)(void *ctx);
	void *ctx;
};

/* It begins. NULL: no memory. */
struct wait *wait_new(const struct wait_for *f);
/* Has it ended, with *ret_error 0, of a fault or of the work? Else the
 * connection is suspended. On a thread of the connection. */
bool wait_over(struct wait *w, int *ret_error);
/* Nobody waits any more. NULL is allowed. */
void wait_free(struct wait *w);

#endif
