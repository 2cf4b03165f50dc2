/* SPDX-License-Identifier: MIT */
#include "fs/front/mountpoint_hold.h"

#include <errno.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/util.h"

int mountpoint_open(const char *path)
{
	_cleanup_close_ int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	char name[32], at[PATH_MAX];
	ssize_t n;

	if (fd < 0)
		return -errno;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	n = readlink(name, at, sizeof(at));
	if (n < 0)
		return -errno;
	return (size_t)n == strlen(path) && !memcmp(at, path, (size_t)n)
		       ? TAKE_FD(fd)
		       : -ESTALE;
}

/* Probes with a call whose arguments are invalid. Where the call is unknown or
 * filtered, mount(2) may still be allowed; it mounts by path. */
static bool may_mount(void)
{
	return syscall(SYS_fsopen, "", ~0u) < 0 && errno == EINVAL;
}

int mountpoint_hold(const char *path, struct mountpoint *ret, struct err *err)
{
	*ret = (struct mountpoint){ .fd = -1 };
	if (may_mount()) {
		ret->fd = mountpoint_open(path);
		if (ret->fd < 0)
			return err_set(err, ret->fd,
				       "%s: cannot mount there: %s", path,
				       strerror(-ret->fd));
		snprintf(ret->held, sizeof(ret->held), "/proc/self/fd/%d",
			 ret->fd);
	}
	ret->name = ret->fd < 0 ? path : ret->held;
	return 0;
}

/*
 * As libfuse, but by the descriptor: its own unmount may run umount(8), as in
 * Debian 13, which cannot follow a descriptor of this process.
 */
static void unmount_held(const struct mountpoint *m, int device)
{
	struct pollfd severed = { .fd = device };
	int pipe[2];

	/* unmounted by others: another mount may be there now */
	if (poll(&severed, 1, 0) == 1 && severed.revents & POLLERR)
		return;
	/* An open device would make the kernel wait for our answers. A pipe
	 * without a reader takes its number, and polls as severed. */
	if (pipe2(pipe, O_CLOEXEC) < 0)
		return;
	close(pipe[0]);
	dup3(pipe[1], device, O_CLOEXEC);
	close(pipe[1]);
	umount2(m->name, MNT_DETACH);
}

void mountpoint_unmount(const struct mountpoint *m,
			struct fuse_session *session)
{
	if (m->fd >= 0)
		unmount_held(m, fuse_session_fd(session));
	fuse_session_unmount(session);
}

void mountpoint_release(struct mountpoint *m)
{
	if (m->fd >= 0)
		close(m->fd);
	m->fd = -1;
}
