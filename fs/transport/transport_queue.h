/* SPDX-License-Identifier: MIT */
/*
 * One queue of FUSE over io_uring: the requests of one processor, and the
 * thread there that serves them (fs/transport/transport_uring.h).
 *
 * The kernel fills an entry, header and payload, for each request, and has it
 * back with the answer. Only the queue's thread touches its ring. It takes the
 * requests that are there, hands each to libfuse, and goes to the kernel once
 * for all answers of the batch and the wait for the next one:
 *
 *	io_uring_enter        commit the answers, wait
 *	for each completion   put the request together, let libfuse handle it;
 *	                      what is answered at once is on `answered` then
 *	`handed`              answers of other threads, which wake this one;
 *	                      the payload is written by them already
 *
 * All that the kernel writes into entries it writes in this thread, within
 * io_uring_enter (IORING_SETUP_DEFER_TASKRUN). So between the last completion
 * of a batch and the next wait the payload of an entry that is not in use holds
 * nothing, and its memory can be given back. The least recently used go first,
 * when there is much of it; the kernel takes the entry that it got back last.
 *
 * An entry is in use until its request is answered, however long that takes.
 * A request that finds none waits for an answer of its queue, unseen, and is
 * not found by a new entry either. So there is always a number of them left:
 * more than readers ask for before the thread has had its turn.
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
	size_t keep_bytes;    /* payload memory kept of what is not in use */
	unsigned least_free;  /* entries */
};

/* Start the thread, with a ring. -ENOMEM, -EAGAIN, -EPERM, -ENOSYS, -EINVAL. */
int queue_new(const struct queue_config *config, struct queue **ret);
/* Let requests come in. -errno: none will. */
int queue_register(struct queue *q);
/* No more requests; answers that come now are dropped. */
void queue_stop(struct queue *q);
/* Stops first; NULL is allowed. No answer may come any more. */
void queue_free(struct queue *q);

/*
 * Answer the request that libfuse knows as `unique`: `iov` as for writev(2).
 * Any thread. Like writev(2): its bytes, or -1 with errno ENOENT: there is no
 * such request, it was answered or the queue has stopped.
 */
ssize_t queue_reply(struct queue *q, uint64_t unique, const struct iovec *iov,
		    int n);
/* What libfuse knows the kernel's request as; 0: it is not here. Any thread. */
uint64_t queue_find(struct queue *q, uint64_t kernel_unique);

#endif
