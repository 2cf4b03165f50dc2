/* SPDX-License-Identifier: MIT */
/* What the server tells the trace; nothing happens where there is none. */
#ifndef GPEMU_FS_SERVER_SERVER_TRACE_H
#define GPEMU_FS_SERVER_SERVER_TRACE_H

#include "fs/server/server_private.h"

/* Under the lock: the next access to the cache, and how it went. */
struct trace_asked trace_asked(struct server *s, bool hit);
/* Under the lock: something else that the cache sees, with an object's key
 * where it is about one. */
void trace_event(struct server *s, enum trace_op op, uint64_t key);
/* Under the lock: an access by passthrough, of a whole file. */
void trace_passthrough(struct server *s, uint32_t node);

/* A read when it is answered: what is known of it before the reply, which takes
 * request and handle away. */
struct trace_reply {
	uint32_t node;
	uint64_t arrival, offset, end; /* end: emulated ns */
	int error;
};
void trace_reply_init(struct server *s, const struct read_request *r,
		      struct trace_reply *ret);
/* `deadline` of the device, 0: it was not asked. */
void trace_part(struct server *s, const struct trace_reply *reply,
		const struct read_part *part, uint64_t deadline);

/* Answer a read that the cache never sees with an error. */
void trace_refused(struct server *s, struct read_request *r, int error);

#endif
