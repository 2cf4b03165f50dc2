/* SPDX-License-Identifier: MIT */
/*
 * One queue of FUSE over io_uring: the requests of one processor, and the
 * thread there that serves them (fs/transport/transport_uring.h).
 *
 * The kernel fills an entry, header and payload, for each request, and gets it
 * back with the answer. Only the queue's thread uses its ring. It passes each
 * available request to libfuse. One system call then submits all answers of
 * the batch and waits for the next batch:
 *
 *	io_uring_enter        commit the answers, wait
 *	for each completion   assemble the request, let libfuse handle it;
 *	                      an immediate answer goes on `answered`
 *	`handed`              answers of other threads, which have written
 *	                      the payload and wake this thread
 *
 * The kernel writes into entries only in this thread, within io_uring_enter
 * (IORING_SETUP_DEFER_TASKRUN). So between the last completion of a batch and
 * the next wait, the payload of an entry that is not in use holds no data, and
 * its memory can be freed. Above a limit the least recently used go first; the
 * kernel reuses the entry that it got back last.
 *
 * An entry is in use until its request is answered, however long that takes.
 * A request without an entry waits, unseen, for an answer of its queue; adding
 * an entry does not help it. So a number of entries is always kept free: more
 * than the requests that arrive before the thread runs again.
 */
#ifndef GPEMU_FS_TRANSPORT_TRANSPORT_QUEUE_H
#define GPEMU_FS_TRANSPORT_TRANSPORT_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct fuse_session;
struct queue;

struct queue_config {
	struct fuse_session *session;
	int fd;		      /* of the session's device; borrowed */
	uint16_t number;      /* of the processor */
	size_t payload_bytes; /* the longest request and answer; whole pages */
	size_t keep_bytes;    /* payload memory kept for entries not in use */
	unsigned least_free;  /* entries */
};

/* Start the thread, with a ring. -ENOMEM, -EAGAIN, -EPERM, -ENOSYS, -EINVAL. */
int queue_new(const struct queue_config *config, struct queue **ret);
/* Start to receive requests. -errno: none will arrive. */
int queue_register(struct queue *q);
/* No more requests; later answers are dropped. */
void queue_stop(struct queue *q);
/* Stops first; NULL is allowed. No answer may follow. */
void queue_free(struct queue *q);

/*
 * Answer the request that libfuse knows as `unique`: `iov` as for writev(2).
 * Any thread. Like writev(2): its bytes, or -1 with errno ENOENT: no such
 * request, already answered, or the queue has stopped.
 */
ssize_t queue_reply(struct queue *q, uint64_t unique, const struct iovec *iov,
		    int n);
/* libfuse's unique of the kernel's request; 0: it is not here. Any thread. */
uint64_t queue_find(struct queue *q, uint64_t kernel_unique);

#endif
