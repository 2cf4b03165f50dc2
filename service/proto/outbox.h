/* SPDX-License-Identifier: MIT */
/*
 * Messages that wait for their connection to send them, in order; on the thread
 * of its loop. Bounded: more than OUTBOX_MOST bytes end the connection, so that
 * one that does not read costs no more.
 */
#ifndef GPEMU_SERVICE_PROTO_OUTBOX_H
#define GPEMU_SERVICE_PROTO_OUTBOX_H

#include <stdbool.h>

#include "net/conn.h"
#include "service/proto/msg.h"

/* The definitions of all jobs, which a new worker gets at once, and as much for
 * the splits of a large epoch that were lost. 64: as BOOK_JOBS */
enum { OUTBOX_MOST = 64 * PREPD_MOST + (4 << 20) };

struct outbox {
	struct outbox_item *first, **end;
	size_t bytes;
	int closes; /* a REFUSE is the last message: why; else 0 */
};

void outbox_init(struct outbox *o);
/* It is empty then, and may be used again. */
void outbox_fini(struct outbox *o);
/* Append; sent by outbox_fill. A failure (-ENOMEM, -ENOBUFS) ends the
 * connection. */
void outbox_put(struct outbox *o, struct conn *c, const struct msg *m);
/* A REFUSE with the text; the connection ends with the error when it was
 * sent. */
void outbox_refuse(struct outbox *o, struct conn *c, int error,
		   const char *why);
/* Send the next message; false: there is none. */
bool outbox_fill(struct outbox *o, struct conn *c, uint64_t now);

#endif
