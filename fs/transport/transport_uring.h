/* SPDX-License-Identifier: MIT */
/*
 * FUSE over io_uring (Linux 6.14, where
 * /sys/module/fuse/parameters/enable_uring is Y), for a libfuse that does not
 * know of it: a queue for each processor (fs/transport/transport_queue.h) from
 *which requests are fed to the session, and to which its replies are brought
 *back. A request is served on the processor that it was made on: a switch of
 * threads, no wake-up of another one.
 *
 *	INIT request   <- /dev/fuse: is it offered? then uring_new
 *	INIT reply     -> /dev/fuse: says that we come over io_uring; the kernel
 *	                  holds all requests until each queue has an entry
 *	uring_start       the entries
 *	requests       <- the queues
 *	FORGET, INTERRUPT <- /dev/fuse, always
 *
 * Source: fs/fuse/dev_uring.c of Linux.
 */
#ifndef GPEMU_FS_TRANSPORT_TRANSPORT_URING_H
#define GPEMU_FS_TRANSPORT_TRANSPORT_URING_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct fuse_session;
struct uring;

/*
 * Threads and rings; `fd` is the session's device. `payload_bytes`: the longest
 * read and write that INIT agrees on. -ENOMEM, -EAGAIN, -EPERM, -ENOSYS,
 * -EINVAL.
 */
int uring_new(struct fuse_session *session, int fd, size_t payload_bytes,
	      struct uring **ret);
/* When the INIT reply has gone out. -errno: the kernel stays with /dev/fuse. */
int uring_start(struct uring *u);
/* No more requests; replies that come now are dropped. */
void uring_stop(struct uring *u);
/* Stops first; NULL is allowed. No reply may come any more. */
void uring_free(struct uring *u);

/* As writev(2), for a reply to a request of a queue (unique_is_ours). */
ssize_t uring_reply(struct uring *u, uint64_t unique, const struct iovec *iov,
		    int n);
/* What libfuse knows the kernel's request as: one of ours, or itself. */
uint64_t uring_unique(struct uring *u, uint64_t kernel_unique);

#endif
