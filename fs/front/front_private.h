/* SPDX-License-Identifier: MIT */
#ifndef GPEMU_FS_FRONT_FRONT_PRIVATE_H
#define GPEMU_FS_FRONT_FRONT_PRIVATE_H

#include <sys/types.h>

#include "fs/front/front.h"
#include "fs/front/mountpoint_hold.h"
#include "fs/front/passthrough.h"
#include "fs/transport/transport.h"

struct front_file;
struct fuse_lowlevel_ops;
struct fuse_req;
struct fuse_session;

struct front {
	struct transport transport; /* first: libfuse's user data is both */
	struct front_config c;
	struct fuse_session *session;
	struct mountpoint mountpoint; /* while mounted */
	bool mounted;
	pthread_t looper;
	bool looping;  /* atomic: the thread is in front_loop */
	bool stopping; /* atomic: front_stop was called */
	pthread_t calibrator;
	bool calibrates;    /* the thread was started */
	uint64_t probe_ns;  /* atomic: how long a name that is not there takes
			     * in the control directory, emulated; 0: nothing */
	uint64_t n_lookups; /* atomic: of control */
	struct passthrough passthrough;
	pthread_mutex_t files_lock;
	struct front_file *files; /* open now; utlist, under files_lock */
	/*
	 * Who mounted. To others than him the kernel opens the mount only with
	 * allow_other (`shared`); then files have the owners of the source, and
	 * the kernel checks modes as it does there. Else all files are his, who
	 * may read what this process can. The control files always are.
	 */
	uid_t uid;
	gid_t gid;
	bool shared;
};

/*
 * Who asks with `req`, as the server's faults call it (fs/server/server.h), to
 * be told of its signals. NULL while there are no rules.
 */
void *front_client(struct front *f, struct fuse_req *req);

/* A session of `f`, not mounted yet; sets f->shared. NULL: only a try.
 * -EINVAL (options), -ENOMEM; with a text. */
int front_session_new(const struct front_config *c,
		      const struct fuse_lowlevel_ops *ops, struct front *f,
		      struct fuse_session **ret, struct err *err);

/* What libfuse is to mount with, malloc'ed: "fsname=SOURCE,..." with what would
 * end an option escaped. NULL: no memory. */
char *front_mount_options(const struct front_config *c);

#endif
