/* SPDX-License-Identifier: MIT */
#ifndef GPEMU_FS_FRONT_FRONT_PRIVATE_H
#define GPEMU_FS_FRONT_FRONT_PRIVATE_H

#include <fuse_lowlevel.h>
#include <sys/types.h>

#include "fs/front/front_config.h"
#include "fs/front/mountpoint_hold.h"
#include "fs/front/passthrough.h"
#include "fs/transport/transport.h"

struct front_file;

struct front {
	struct transport transport; /* first: both are libfuse's user data */
	struct front_config c;
	struct fuse_session *session;
	struct mountpoint mountpoint; /* while mounted */
	bool mounted;
	pthread_t looper;
	bool looping;  /* atomic: the thread is in front_loop */
	bool stopping; /* atomic: front_stop was called */
	pthread_t calibrator;
	bool calibrates;    /* the thread was started */
	uint64_t probe_ns;  /* atomic: emulated time that a calibration probe
			     * of a control file takes; 0: none */
	uint64_t n_lookups; /* atomic: of control */
	struct passthrough passthrough;
	pthread_mutex_t files_lock;
	struct front_file *files,
		*spare; /* all, and those not open; under files_lock */
	/*
	 * The user who mounted. The kernel admits other users only with
	 * allow_other (`shared`); then files have the owners of the source, and
	 * the kernel checks modes as it does there. Else all files belong to
	 * this user, who may read what this process can. Control files always
	 * belong to this user.
	 */
	uid_t uid;
	gid_t gid;
	bool shared;
	int open_flags; /* of open(2), for files of the writable folder */
};

static inline void front_interrupted(struct fuse_req *req, void *front)
{
	server_interrupt(((struct front *)front)->c.server, req);
}

/*
 * The client of `req` as the server's faults know it (fs/server/server.h), so
 * that its signals end a delay. NULL while there are no fault rules.
 */
static inline void *front_client(struct front *f, struct fuse_req *req)
{
	if (!server_watches(f->c.server, TREE_NONE))
		return NULL;
	fuse_req_interrupt_func(req, front_interrupted, f);
	return req;
}

/* A session of `f`, not mounted yet; sets f->shared and f->open_flags. `f`
 * NULL: only a check. -EINVAL (options), -ENOMEM; with a text. */
int front_session_new(const struct front_config *c,
		      const struct fuse_lowlevel_ops *ops, struct front *f,
		      struct fuse_session **ret, struct err *err);

#endif
