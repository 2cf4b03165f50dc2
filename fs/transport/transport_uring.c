/* SPDX-License-Identifier: MIT */
#include "fs/transport/transport_uring.h"

#include <errno.h>
#include <liburing.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "common/units.h"
#include "common/util.h"
#include "fs/transport/transport_entry.h"
#include "fs/transport/transport_protocol.h"
#include "fs/transport/transport_queue.h"

/* arbitrary: for all queues together, the answers of some hundred readers of
 * ImageNet's files; for each queue, at least those of a few readers */
#define KEEP_BYTES (64 * MIB)
#define KEEP_LEAST (2 * MIB)

/* Requests arrive faster than the queue's thread is scheduled: with ten
 * thousand readers on one processor more than 500 arrive in between. So with
 * two processors each queue has entries for all readers from the start. An
 * entry takes some 500 bytes; many processors share the total. */
enum { FREE_ENTRIES = 24576, FREE_LEAST = 2048, FREE_OFFLINE = 128 };

struct uring {
	int fd;
	unsigned n;
	struct queue *queues[];
};

int uring_new(struct fuse_session *session, int fd, size_t payload_bytes,
	      struct uring **ret)
{
	/* the kernel counts possible processors, not only those online */
	unsigned n = (unsigned)get_nprocs_conf();
	unsigned n_online = (unsigned)get_nprocs();
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct uring *u = calloc(1, sizeof(*u) + n * sizeof(u->queues[0]));
	struct queue_config c = {
		.session = session,
		.fd = fd,
		.payload_bytes = (payload_bytes + page - 1) / page * page,
		.keep_bytes = MAX(KEEP_BYTES / n, KEEP_LEAST),
	};
	int r = 0;

	if (!u)
		return -ENOMEM;
	u->fd = fd;
	for (; r == 0 && u->n < n; u->n += r == 0) {
		c.number = (uint16_t)u->n;
		c.least_free = u->n < n_online ? MAX(FREE_ENTRIES / n_online,
						     FREE_LEAST)
					       : FREE_OFFLINE;
		r = queue_new(&c, &u->queues[u->n]);
	}
	if (r < 0) {
		uring_free(u);
		return r;
	}
	*ret = u;
	return 0;
}

/*
 * The kernel holds all requests until each queue has an entry. If a
 * registration fails, it stays with /dev/fuse. So make one fail: register a
 * queue that does not exist.
 */
static void refuse(const struct uring *u)
{
	struct uring_command command = { .queue = UINT16_MAX };
	struct io_uring_params p = { .flags = IORING_SETUP_SQE128 };
	struct io_uring_sqe *sqe;
	struct io_uring ring;

	if (io_uring_queue_init_params(1, &ring, &p) < 0)
		return;
	sqe = io_uring_get_sqe(&ring);
	if (sqe) {
		memset(sqe, 0, 2 * sizeof(*sqe));
		sqe->opcode = IORING_OP_URING_CMD;
		sqe->fd = u->fd;
		sqe->cmd_op = URING_CMD_REGISTER;
		memcpy(sqe->cmd, &command, sizeof(command));
		io_uring_submit_and_wait(&ring, 1);
	}
	io_uring_queue_exit(&ring);
}

int uring_start(struct uring *u)
{
	int r = 0;

	for (unsigned i = 0; r == 0 && i < u->n; i++)
		r = queue_register(u->queues[i]);
	if (r < 0)
		refuse(u);
	return r;
}

void uring_stop(struct uring *u)
{
	for (unsigned i = 0; i < u->n; i++)
		queue_stop(u->queues[i]);
}

void uring_free(struct uring *u)
{
	if (!u)
		return;
	for (unsigned i = 0; i < u->n; i++)
		queue_free(u->queues[i]);
	free(u);
}

ssize_t uring_reply(struct uring *u, uint64_t unique, const struct iovec *iov,
		    int n)
{
	uint16_t number = unique_queue(unique);

	if (number >= u->n) {
		errno = ENOENT;
		return -1;
	}
	return queue_reply(u->queues[number], unique, iov, n);
}

uint64_t uring_unique(struct uring *u, uint64_t kernel_unique)
{
	uint64_t unique = 0;

	for (unsigned i = 0; !unique && i < u->n; i++)
		unique = queue_find(u->queues[i], kernel_unique);
	return unique ? unique : kernel_unique;
}
