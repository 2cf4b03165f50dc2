/* SPDX-License-Identifier: MIT */
/*
 * openat2(2) does it in one call, from Linux 5.6 on, if a seccomp filter allows
 * it. Where it is missing, each directory of the path is opened from its
 * parent, at one call each. Without ".." in the path, and with no link
 * followed, both end below the directory or fail.
 */
#include "fs/source/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/util.h"

static int call(int fd, const char *path, int flags, bool nowait)
{
	struct open_how how = {
		.flags = (unsigned)(flags | O_NOFOLLOW | O_CLOEXEC),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
			   (nowait ? RESOLVE_CACHED : 0),
	};
	long r = syscall(SYS_openat2, fd, path, &how, sizeof(how));

	return r < 0 ? -errno : (int)r;
}

static int walk(int at, const char *path, int flags)
{
	_cleanup_close_ int dir = -1;
	char name[NAME_MAX + 1];

	for (;;) {
		size_t n = strcspn(path, "/");
		bool last = !path[n];
		int fd;

		if (n > NAME_MAX)
			return -ENAMETOOLONG;
		memcpy(name, path, n);
		name[n] = 0;
		fd = openat(at, name,
			    (last ? flags : O_PATH | O_DIRECTORY) | O_NOFOLLOW |
				    O_CLOEXEC);
		if (fd < 0)
			return -errno;
		if (last)
			return fd;
		if (dir >= 0)
			close(dir);
		dir = at = fd;
		path += n + 1;
	}
}

void beneath_init(struct beneath *b, int fd)
{
	int dot = call(fd, ".", O_PATH | O_DIRECTORY, false);

	/* seccomp filters return one or the other */
	*b = (struct beneath){ .fd = fd,
			       .no_call = dot == -ENOSYS || dot == -EPERM };
	if (dot >= 0)
		close(dot);
}

int beneath_open(const struct beneath *b, const char *path, int flags,
		 bool nowait)
{
	int r;

	if (b->no_call)
		return nowait ? -EAGAIN : walk(b->fd, path, flags);
	r = call(b->fd, path, flags, nowait);
	/* Linux before 5.12 has no RESOLVE_CACHED */
	return nowait && r == -EINVAL ? -EAGAIN : r;
}
