/* SPDX-License-Identifier: MIT */
#include "fs/front/front_xattr.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "fs/front/front_dir.h"
#include "fs/front/front_private.h"
#include "fs/server/server.h"

/* Size 0: the caller asks for the length of the value. */
static void answer(fuse_req_t req, const char *value, size_t n, size_t size)
{
	if (size == 0)
		fuse_reply_xattr(req, n);
	else if (size < n)
		fuse_reply_err(req, ERANGE);
	else
		fuse_reply_buf(req, value, n);
}

static bool place(fuse_req_t req, fuse_ino_t ino, uint64_t *ret)
{
	const struct front *f = fuse_req_userdata(req);

	return !front_is_ctl(ino) &&
	       server_place(f->c.server, (uint32_t)(ino - 1), ret);
}

void front_xattr_get(fuse_req_t req, fuse_ino_t ino, const char *name,
		     size_t size)
{
	char text[24];
	uint64_t at;
	int n;

	if (strcmp(name, FRONT_XATTR_PLACE) || !place(req, ino, &at)) {
		fuse_reply_err(req, ENODATA);
		return;
	}
	n = snprintf(text, sizeof(text), "%" PRIu64, at);
	answer(req, text, (size_t)n, size);
}

void front_xattr_list(fuse_req_t req, fuse_ino_t ino, size_t size)
{
	uint64_t at;

	answer(req, FRONT_XATTR_PLACE,
	       place(req, ino, &at) ? sizeof(FRONT_XATTR_PLACE) : 0, size);
}
