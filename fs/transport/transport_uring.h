/* SPDX-License-Identifier: MIT */
/*
 * FUSE over io_uring (Linux 6.14, where
 * /sys/module/fuse/parameters/enable_uring is Y), for a libfuse without
 * support for it. Each processor has a queue: its requests go to the session,
 * and the session's replies go back to it. A request is served on the processor
 * of its caller: a switch of threads, no wake-up of another processor.
 *
 *	INIT request   <- /dev/fuse: is it offered? then uring_new
 *	INIT reply     -> /dev/fuse: requests io_uring; the kernel then holds
 *	                  all requests until each queue has an entry
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
 * Make threads and rings; `fd` is the session's device. `payload_bytes`: the
 * longest read and write that INIT negotiated. -ENOMEM, -EAGAIN, -EPERM,
 * -ENOSYS, -EINVAL.
 */
int uring_new(struct fuse_session *session, int fd, size_t payload_bytes,
	      struct uring **ret);
/* After the INIT reply was sent. -errno: the kernel stays with /dev/fuse. */
int uring_start(struct uring *u);
/* No more requests; later replies are dropped. */
void uring_stop(struct uring *u);
/* Stops first; NULL is allowed. No reply may follow. */
void uring_free(struct uring *u);

/* As writev(2), for a reply to a request of a queue (unique_is_ours). */
ssize_t uring_reply(struct uring *u, uint64_t unique, const struct iovec *iov,
		    int n);
/* libfuse's unique of the kernel's request: one of ours, or the kernel's. */
uint64_t uring_unique(struct uring *u, uint64_t kernel_unique);

#endif
