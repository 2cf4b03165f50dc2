/* SPDX-License-Identifier: MIT */
/*
 * gRPC over HTTP/2 on Unix sockets, on an event loop: a server, and a client
 * for one call.
 *
 *	grpc_frame.c	messages and texts as gRPC writes them; pure
 *	grpc_conn.c	a socket and its HTTP/2 session (nghttp2)
 *	grpc_server.c	the calls of clients
 *	grpc_client.c	a call
 *
 * A request is one message; an answer is one, or any number. There is no
 * compression, no TLS, and no deadline of a call on the server. Any
 * `:authority` is accepted: some clients send the path of the socket, which is
 * no host (RFC 9113, 8.3.1) and which nghttp2 refuses by default.
 *
 * Source: https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md
 */
#ifndef GPEMU_PLATFORM_GRPC_GRPC_H
#define GPEMU_PLATFORM_GRPC_GRPC_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/program/events.h"

enum grpc_status {
	GRPC_OK = 0,
	GRPC_UNKNOWN = 2,
	GRPC_INVALID_ARGUMENT = 3,
	GRPC_DEADLINE_EXCEEDED = 4,
	GRPC_NOT_FOUND = 5,
	GRPC_RESOURCE_EXHAUSTED = 8,
	GRPC_FAILED_PRECONDITION = 9,
	GRPC_UNIMPLEMENTED = 12,
	GRPC_INTERNAL = 13,
	GRPC_UNAVAILABLE = 14,
};

enum {
	/* Bytes of a request. arbitrary: twice the identifiers, of 63 bytes
	 * each, of 8192 devices */
	GRPC_MAX_REQUEST = 1 << 20,
	/* Bytes of an answer. Source: the limit that kubelet sets for its own
	 * list of pods */
	GRPC_MAX_ANSWER = 16 << 20,
	/* Connections to a server, and calls of each; a further connection
	 * takes the place of one without calls. arbitrary: a kubelet has one
	 * connection with two calls */
	GRPC_CONNS = 8,
	GRPC_CALLS = 16,
};

/* --- the server ----------------------------------------------------------- */

struct grpc_server;
/* A call that was not ended yet. */
struct grpc_call;

struct grpc_method {
	const char *path; /* "/package.Service/Method" */
	/* The request has come. Ends the call, now or later. */
	void (*begin)(struct grpc_call *c, const void *request, size_t n);
};

struct grpc_server_config {
	struct events *events;
	const struct grpc_method *methods; /* a NULL path ends them */
	/* The client gave up, or left, after `begin` and before grpc_end. */
	void (*gone)(struct grpc_call *c);
	void *ctx;
};

/*
 * Listen at a path; what is there and is a socket without a server is replaced.
 * -EADDRINUSE: another server listens, or another file is in the way; -errno;
 * with a text.
 */
int grpc_server_new(const struct grpc_server_config *config, const char *path,
		    struct grpc_server **ret, struct err *err);
/* Ends all calls without `gone`, and removes the socket's file. NULL is
 * allowed. */
void grpc_server_free(struct grpc_server *s);
/* Is the file at the path still that of this server? */
bool grpc_server_reachable(const struct grpc_server *s);

/* The server's `ctx`. */
void *grpc_call_ctx(const struct grpc_call *c);
/*
 * Send a message. A message that was not begun to be sent is replaced, as of a
 * stream only the latest state counts. -ENOMEM.
 */
int grpc_send(struct grpc_call *c, const void *message, size_t n);
/* End the call, after what was sent; it is no longer the owner's. */
void grpc_end(struct grpc_call *c, enum grpc_status status, const char *text);

/* --- the client ----------------------------------------------------------- */

struct grpc_client;

struct grpc_request {
	const char *path;   /* of the socket */
	const char *method; /* "/package.Service/Method" */
	const void *message;
	size_t n;
	uint64_t timeout_ns;
	/*
	 * The call has ended, and the client with it. `answer` is NULL if the
	 * status is not GRPC_OK; `text` says then what happened.
	 */
	void (*done)(void *ctx, enum grpc_status status, const char *text,
		     const void *answer, size_t n);
	void *ctx;
};

/* Connect and call. What the request points to is copied; `done` is called from
 * the loop. -errno with a text: no server there. */
int grpc_client_new(struct events *events, const struct grpc_request *request,
		    struct grpc_client **ret, struct err *err);
/* Give up: `done` is not called. NULL is allowed. */
void grpc_client_free(struct grpc_client *c);

#endif
