/* SPDX-License-Identifier: MIT */
/* The client of a request: a fault may delay it, a signal ends the delay. */
#include <fuse_lowlevel.h>

#include "fs/front/front_private.h"

static void interrupted(fuse_req_t req, void *front)
{
	server_interrupt(((struct front *)front)->c.server, req);
}

void *front_client(struct front *f, struct fuse_req *req)
{
	if (!server_watches(f->c.server, TREE_NONE))
		return NULL;
	fuse_req_interrupt_func(req, interrupted, f);
	return req;
}
