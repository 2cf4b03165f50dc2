/* SPDX-License-Identifier: MIT */
/*
 * Negotiates kernel features that libfuse 3.14 does not request.
 *
 * A libfuse session lets the caller read from and write to /dev/fuse
 * (fuse_session_custom_io). All messages pass unchanged, except the reply to
 * INIT. In it we set feature bits that the kernel offered and that libfuse
 * 3.14 does not know or, by a bug, never sends:
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
	bool settled; /* atomic: set as the INIT reply is sent */
	/* called once, after it, when the mount is usable; may be NULL */
	void (*accepted)(struct transport *t);
	bool want_passthrough, want_uring; /* set before the mount */
	/* valid from `accepted` on */
	bool passthrough; /* wanted and offered */
	bool over_uring;  /* the same; else requests come over the device */
	int uring_error;  /* -errno: offered, but it failed */
	/* private */
	struct fuse_session *session;
	struct uring *uring;
};

/*
 * Put a transport between the session and the device; before
 * fuse_session_mount. The user data passed to fuse_session_new must be this
 * transport, or begin with it; all fields zero but those set before the mount.
 * -errno.
 */
int transport_attach(struct transport *t, struct fuse_session *session);
/* Stop the queues; call it after the session's loop. */
void transport_stop(struct transport *t);
/* Stops first; no reply may follow. All zeros is allowed. */
void transport_fini(struct transport *t);

#endif
