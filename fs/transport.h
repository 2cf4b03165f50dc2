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
 *				itself (fs/passthrough.h)
 *
 * Numbers and layouts: include/uapi/linux/fuse.h of Linux, protocol 7.40.
 */
#ifndef GPEMU_FS_TRANSPORT_H
#define GPEMU_FS_TRANSPORT_H

#include <stdbool.h>
#include <stdint.h>

struct fuse_session;

struct transport {
	uint64_t init_unique; /* of the INIT request; atomic, 0: not seen */
	uint32_t offered, offered2;
	bool settled; /* atomic: the reply has gone out */
	/* called once, when it has and the mount can be used; may be NULL */
	void (*accepted)(struct transport *t);
	bool want_passthrough; /* set before the mount */
	bool passthrough;      /* was asked for and offered */
};

/*
 * Put a transport between the session and the device; before
 * fuse_session_mount. The user data that fuse_session_new was given must be a
 * zeroed struct transport, or begin with one. -errno.
 */
int transport_attach(struct fuse_session *session);

#endif
