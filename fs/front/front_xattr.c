/* SPDX-License-Identifier: MIT */
#include "fs/front/front_xattr.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/util.h"
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

/* The value of an attribute of a file; false: it has none of that name. */
static bool find(fuse_req_t req, fuse_ino_t ino, const char *name,
		 uint64_t *ret)
{
	const struct front *f = fuse_req_userdata(req);
	uint32_t file = (uint32_t)(ino - 1), owner;

	if (front_is_ctl(ino))
		return false;
	if (!strcmp(name, FRONT_XATTR_PLACE))
		return server_place(f->c.server, file, ret);
	if (strcmp(name, FRONT_XATTR_OWNER) ||
	    !server_owner(f->c.server, file, &owner))
		return false;
	*ret = owner;
	return true;
}

void front_xattr_get(fuse_req_t req, fuse_ino_t ino, const char *name,
		     size_t size)
{
	char text[24];
	uint64_t value;
	int n;

	if (!find(req, ino, name, &value)) {
		fuse_reply_err(req, ENODATA);
		return;
	}
	n = snprintf(text, sizeof(text), "%" PRIu64, value);
	answer(req, text, (size_t)n, size);
}

void front_xattr_list(fuse_req_t req, fuse_ino_t ino, size_t size)
{
	static const char *const names[] = { FRONT_XATTR_PLACE,
					     FRONT_XATTR_OWNER };
	char list[sizeof(FRONT_XATTR_PLACE) + sizeof(FRONT_XATTR_OWNER)];
	uint64_t value;
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		size_t len = strlen(names[i]) + 1;

		if (!find(req, ino, names[i], &value))
			continue;
		memcpy(list + n, names[i], len);
		n += len;
	}
	answer(req, list, n, size);
}
