/* SPDX-License-Identifier: MIT */
/*
 * What libfuse 3.14 does not ask the kernel for, asked for in its name.
 *
 * Its session lets the caller do the reading from and writing to /dev/fuse
 * (fuse_session_custom_io). Everything passes through unchanged but one
 * message: the reply to INIT, in which feature bits are set that the kernel
 * offered and libfuse 3.14 does not know or, by a bug, never sends:
 *
 *	PARALLEL_DIROPS		lookups and listings within one directory do not
 *				wait for each other (libfuse c9905341, in 3.17)
 *	DIRECT_IO_ALLOW_MMAP	mmap works on files opened with direct I/O
 *	PASSTHROUGH		the kernel may read from a backing file by
 *				itself (fs/front/passthrough.h)
 *
 *	OVER_IO_URING		requests come from queues in memory
 *				(fs/transport/transport_uring.h)
 */
#ifndef GPEMU_FS_TRANSPORT_TRANSPORT_H
#define GPEMU_FS_TRANSPORT_TRANSPORT_H

#include <stdbool.h>
#include <stdint.h>

struct fuse_session;
struct uring;

struct transport {
	uint64_t init_unique; /* of the INIT request; atomic, 0: not seen */
	uint32_t offered, offered2;
	bool settled; /* atomic: the reply has gone out */
	/* called once, when it has and the mount can be used; may be NULL */
	void (*accepted)(struct transport *t);
	bool want_passthrough, want_uring; /* set before the mount */
	/* from `accepted` on */
	bool passthrough; /* was asked for and offered */
	bool over_uring;  /* the same; else requests come over the device */
	int uring_error;  /* why not, though it was offered: -errno */
	/* private */
	struct fuse_session *session;
	struct uring *uring;
};

/*
 * Put a transport between the session and the device; before
 * fuse_session_mount. The user data that fuse_session_new was given must be
 * this transport, zeroed but for what is set before the mount, or begin with
 * it. -errno.
 */
int transport_attach(struct transport *t, struct fuse_session *session);
/* Requests come over the device alone; when the session's loop has ended. */
void transport_stop(struct transport *t);
/* Stops first, and no reply may come any more. All zeros is allowed. */
void transport_fini(struct transport *t);

#endif
