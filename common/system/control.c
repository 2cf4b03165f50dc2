/* SPDX-License-Identifier: MIT */
#include "common/system/control.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "common/util.h"

static bool is_of_mount(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && fs.f_type == FUSE_SUPER_MAGIC;
}

int control_open(const char *dir, const char *name, int flags)
{
	_cleanup_close_ int at =
		open(dir, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	_cleanup_close_ int fd = -1;
	struct stat st;

	if (at < 0)
		return -errno;
	if (!is_of_mount(at))
		return -ENODEV;
	fd = openat(at, name, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	return S_ISREG(st.st_mode) && is_of_mount(fd) ? TAKE_FD(fd) : -ENODEV;
}
