/* SPDX-License-Identifier: MIT */
/* One read of a handle, and the pieces of objects that it consists of. */
#ifndef GPEMU_FS_SERVER_REQUEST_H
#define GPEMU_FS_SERVER_REQUEST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "fs/device/fetch.h"
#include "fs/server/budget.h"

struct handle;
struct object;
struct read_request;
struct server;

struct read_part {
	struct object *object;
	size_t offset, bytes; /* in the object */
	struct read_request *request;
	struct read_part *next; /* list of waiters for the same object */
	uint32_t number;	/* in the request */
	bool hit;
	/* place in the order of counted accesses, from 1; 0: it was not
	 * counted */
	uint64_t seq;
	uint64_t deadline; /* of the fetch it waited for; 0: none */
};

/* a read of up to 4 MiB touches two extents at most */
enum { READ_PARTS = 2 };

struct read_request {
	/* filled in by the caller */
	struct handle *handle;
	uint64_t offset;
	size_t bytes; /* <= OBJECT_EXTENT */
	/* So many bytes of the file were read before by the same request to an
	 * object store, which this one continues: arrival is the deadline of
	 * that part (server_read_deadline). Where no cache keeps the file, the
	 * device charges the bytes alone. 0: it is a request. */
	uint64_t before;
	uint64_t arrival;
	/* The requester, unique among pending requests, as passed to
	 * server_interrupt; NULL: no fault applies to this read. */
	void *client;
	/* The bytes (n_iov 0: end of file), or error < 0. The memory is valid
	 * until it returns. */
	void (*reply)(struct read_request *r, int error,
		      const struct iovec *iov, int n_iov);
	/* private */
	struct server *server;
	struct read_part parts[READ_PARTS];
	int n_parts;
	int pending; /* atomic */
	int error;
	void (*ready)(struct read_request *r); /* nothing is pending */
	bool later;			       /* see struct fetch */
	bool again;			       /* some bytes are in no object */
	struct fetch raw; /* whole request: if `again`, or without cache */
	struct budget_wait room; /* memory for its bytes */
};

/* One of the completions that a request waits for. */
static inline void read_settle(struct read_request *r)
{
	if (__atomic_sub_fetch(&r->pending, 1, __ATOMIC_ACQ_REL) == 0)
		r->ready(r);
}

#endif
