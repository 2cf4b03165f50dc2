/* SPDX-License-Identifier: MIT */
/* The trainers that are connected to a worker, and what is sent to them. On the
 * thread of its loop. */
#ifndef GPEMU_SERVICE_WORKER_READERS_H
#define GPEMU_SERVICE_WORKER_READERS_H

#include <sys/uio.h>

#include "net/loop.h"
#include "service/proto/access.h"
#include "service/worker/task.h"

struct reader;

struct readers {
	struct loop *loop;
	struct ends *ends;
	/* The task of a job; NULL: it is not here. */
	struct task *(*find)(void *ctx, uint64_t job);
	void *ctx;
	uint64_t n_batches; /* sent */
	uint64_t n_skipped; /* left their window before a trainer read them */
	/* private */
	struct reader *first;
	unsigned char *head; /* of the batch that is being sent */
	struct iovec *piece;
	size_t head_room, piece_room;
};

/* For `accepted` of struct loop_config. -ENOMEM. */
int readers_accept(struct readers *s, struct conn *c);
/* The task of the job is gone: end the connections that read it. */
void readers_end(struct readers *s, uint64_t job);
/* After their connections have ended. */
void readers_fini(struct readers *s);

#endif
