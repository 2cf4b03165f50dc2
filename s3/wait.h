/* SPDX-License-Identifier: MIT */
/*
 * An operation of the device for one request, while which the client may go,
 * and the real one of a write. This begins when the request is ready for it,
 * but not if a fault ended the operation, and runs while the device takes its
 * time: it is a lower bound of the duration and does not add to it.
 *
 *	wait_new() --- device, or a fault -------> deadline --+
 *		 |  no fault                                   +--> over
 *	wait_work() --+--> a thread of the writers ------------+
 *
 * Whoever finds it unfinished suspends the connection; its end resumes it.
 */
#ifndef GPEMU_S3_WAIT_H
#define GPEMU_S3_WAIT_H

#include <microhttpd.h>

#include "fs/server/server.h"
#include "s3/store/writers.h"

struct wait;

struct wait_for {
	struct server *server;
	struct MHD_Connection *connection;
	enum storage_op op;
	uint32_t node;
	const char *path; /* of an object that was put; NULL: of the tree */
	uint64_t bytes, arrival;
	struct writers *writers; /* NULL: there is no real operation */
};

/* It begins. NULL: no memory. */
struct wait *wait_new(const struct wait_for *f);
/* The real operation, 0 or -errno; once. `ctx` must live until the end;
 * `is_long` as of a write_job. */
void wait_work(struct wait *w, int (*work)(void *ctx), void *ctx, bool is_long);
/* Has it ended, with *ret_error 0, of a fault or of the work? Else the
 * connection is suspended. On a thread of the connection. */
bool wait_over(struct wait *w, int *ret_error);
/* Nobody waits any more. NULL is allowed. */
void wait_free(struct wait *w);

#endif
