/* SPDX-License-Identifier: MIT */
#ifndef GPEMU_FS_FRONT_PRIVATE_H
#define GPEMU_FS_FRONT_PRIVATE_H

#include <sys/types.h>

#include "fs/front.h"
#include "fs/transport.h"

struct fuse_session;

struct front {
	struct transport transport; /* first: libfuse's user data is both */
	struct front_config c;
	struct fuse_session *session;
	bool mounted;
	uid_t uid; /* everything in the mount belongs to who mounted it */
	gid_t gid;
};

#endif
