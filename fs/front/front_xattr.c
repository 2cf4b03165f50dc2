/* SPDX-License-Identifier: MIT */
#include "fs/front/front_xattr.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "fs/front/front_change.h"
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

/* --- of the writable folder ----------------------------------------------- */

/* Others would be checked against this process (security.*, trusted.*), or not
 * be respected (system.posix_acl_*). */
static bool is_kept(const char *name)
{
	return !strncmp(name, "user.", strlen("user."));
}

/* Of what *xattr(2) returned for a buffer of `size`. */
static void answer_got(fuse_req_t req, const char *value, ssize_t got,
		       size_t size)
{
	if (got < 0)
		fuse_reply_err(req, (int)-got);
	else
		answer(req, value, (size_t)got, size);
}

static void get_upper(fuse_req_t req, fuse_ino_t ino, const char *name,
		      size_t size)
{
	const struct front *f = fuse_req_userdata(req);
	_cleanup_free_ char *value = malloc(size + 1);

	if (!is_kept(name))
		fuse_reply_err(req, ENODATA);
	else if (!value)
		fuse_reply_err(req, ENOMEM);
	else
		answer_got(req, value,
			   upper_get_xattr(f->c.upper, ino, name, value, size),
			   size);
}

/* The names of attributes, less those that are not shown. */
static ssize_t list_kept(struct upper *u, fuse_ino_t ino, char *list, size_t n)
{
	ssize_t got = upper_list_xattr(u, ino, list, n), kept = 0;

	for (ssize_t at = 0; at < got;) {
		size_t len = strlen(list + at) + 1;

		if (is_kept(list + at)) {
			memmove(list + kept, list + at, len);
			kept += (ssize_t)len;
		}
		at += (ssize_t)len;
	}
	return got < 0 ? got : kept;
}

static void list_upper(fuse_req_t req, fuse_ino_t ino, size_t size)
{
	const struct front *f = fuse_req_userdata(req);
	_cleanup_free_ char *list = malloc(XATTR_LIST_MAX);

	if (!list)
		fuse_reply_err(req, ENOMEM);
	else
		answer_got(req, list,
			   list_kept(f->c.upper, ino, list, XATTR_LIST_MAX),
			   size);
}

static int act_set(struct change *c)
{
	return upper_set_xattr(c->front->c.upper, c->ino, c->other, c->buf,
			       c->size, c->flags);
}

/* `value` NULL: remove it. */
static void set(fuse_req_t req, fuse_ino_t ino, const char *name,
		const char *value, size_t size, int flags)
{
	struct change *c;

	if (!upper_has(ino) || !is_kept(name)) {
		fuse_reply_err(req, upper_has(ino) ? EOPNOTSUPP : EROFS);
		return;
	}
	c = change_new(req, ino, NULL);
	if (!c)
		return;
	c->other = strdup(name);
	c->buf = value ? malloc(size + 1) : NULL;
	if (!c->other || (value && !c->buf)) {
		change_fail(c, ENOMEM);
		return;
	}
	if (value)
		memcpy(c->buf, value, size);
	c->size = size;
	c->flags = flags;
	c->act = act_set;
	c->answer = change_answer_done;
	change_start(c, STORAGE_CREATE);
}

void front_xattr_set(fuse_req_t req, fuse_ino_t ino, const char *name,
		     const char *value, size_t size, int flags)
{
	set(req, ino, name, value, size, flags);
}

void front_xattr_remove(fuse_req_t req, fuse_ino_t ino, const char *name)
{
	set(req, ino, name, NULL, 0, 0);
}

/* --- of the dataset ------------------------------------------------------- */

void front_xattr_get(fuse_req_t req, fuse_ino_t ino, const char *name,
		     size_t size)
{
	char text[24];
	uint64_t value;
	int n;

	if (upper_has(ino)) {
		get_upper(req, ino, name, size);
		return;
	}
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

	if (upper_has(ino)) {
		list_upper(req, ino, size);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		size_t len = strlen(names[i]) + 1;

		if (!find(req, ino, names[i], &value))
			continue;
		memcpy(list + n, names[i], len);
		n += len;
	}
	answer(req, list, n, size);
}
