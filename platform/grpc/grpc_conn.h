/* SPDX-License-Identifier: MIT */
/* A socket and its HTTP/2 session. */
#ifndef GPEMU_PLATFORM_GRPC_GRPC_CONN_H
#define GPEMU_PLATFORM_GRPC_GRPC_CONN_H

#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <string.h>

#include "common/err.h"
#include "common/program/events.h"

/* What the session reports; the owner of the connection comes with each. */
struct grpc_conn_ops {
	/* A HEADERS frame begins. -ENOMEM ends the connection. */
	int (*headers)(void *owner, const nghttp2_frame *frame);
	void (*header)(void *owner, int32_t id, const char *name,
		       const uint8_t *value, size_t n);
	void (*data)(void *owner, int32_t id, const uint8_t *data, size_t n);
	/* A frame has come whole. */
	void (*frame)(void *owner, const nghttp2_frame *frame);
	/* The stream is gone. */
	void (*closed)(void *owner, int32_t id);
	bool server;
};

struct grpc_conn {
	struct event event;
	struct events *events;
	nghttp2_session *session;
	const struct grpc_conn_ops *ops;
	void *owner;
};

/*
 * A session on `fd`, which it takes over, that reports to `owner` when `fn` was
 * called and calls grpc_conn_turn. -errno; call grpc_conn_fini in any case.
 */
int grpc_conn_init(struct grpc_conn *c, struct events *events, int fd,
		   void (*fn)(struct event *e, uint32_t ready),
		   const struct grpc_conn_ops *ops, void *owner);
void grpc_conn_fini(struct grpc_conn *c);
/* Receive and send as much as there is now. -errno: the connection is over. */
int grpc_conn_turn(struct grpc_conn *c, uint32_t ready);
/* There is something to send: soon, by the loop. */
void grpc_conn_wake(struct grpc_conn *c);

/* A header; neither is copied here. */
static inline nghttp2_nv grpc_header(const char *name, const char *value)
{
	return (nghttp2_nv){ .name = (uint8_t *)(uintptr_t)name,
			     .value = (uint8_t *)(uintptr_t)value,
			     .namelen = strlen(name),
			     .valuelen = strlen(value) };
}

#endif
