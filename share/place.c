/* SPDX-License-Identifier: MIT */
/* The path at which the server listens. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "common/util.h"
#include "share/server.h"

/* Remove the stale socket of a dead server, and nothing else. */
static int clear_place(const struct sockaddr_un *a, struct err *err)
{
	_cleanup_close_ int fd = -1;
	struct stat st;

	if (lstat(a->sun_path, &st) < 0)
		return 0;
	if (!S_ISSOCK(st.st_mode))
		return err_set(err, -EADDRINUSE,
			       "%s: exists and is not a socket; choose another "
			       "--socket",
			       a->sun_path);
	/* EACCES: a server may listen there and refuse us */
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (connect(fd, (const struct sockaddr *)a, sizeof(*a)) == 0 ||
	    errno != ECONNREFUSED)
		return err_set(err, -EADDRINUSE,
			       "%s: another server listens on it; choose "
			       "another --socket",
			       a->sun_path);
	if (unlink(a->sun_path) < 0)
		return err_set(err, -errno, "%s: %s", a->sun_path,
			       strerror(errno));
	return 0;
}

int server_own_folder(const char *folder, mode_t mode, struct err *err)
{
	mode_t mask = umask((mode_t)~mode & 0777);
	int r = mkdir(folder, mode) < 0 && errno != EEXIST ? -errno : 0;
	struct stat st;

	umask(mask);
	if (r == 0 && lstat(folder, &st) < 0)
		r = -errno;
	if (r < 0)
		return err_set(err, r, "%s: %s", folder, strerror(-r));
	/* in /tmp any user can create a folder of this name first */
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() ||
	    st.st_mode & (S_IWGRP | S_IWOTH))
		return err_set(err, -EACCES,
			       "%s: not a private folder of this user; choose "
			       "another --socket",
			       folder);
	return 0;
}

int server_make_folder(const char *path, struct err *err)
{
	_cleanup_free_ char *folder = strdup(path);

	if (!folder)
		return err_set(err, -ENOMEM, "out of memory");
	*strrchr(folder, '/') = '\0';
	return server_own_folder(folder, 0700, err);
}

void server_leave(const char *path, const struct place *place)
{
	struct stat st;

	if (place->ino && lstat(path, &st) == 0 && st.st_ino == place->ino &&
	    st.st_dev == place->dev)
		unlink(path);
}

int server_listen(const char *path, mode_t mode, int *ret_fd,
		  struct place *ret_place, struct err *err)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	struct stat st;
	mode_t mask;
	int fd, r;

	if (strlen(path) >= sizeof(a.sun_path))
		return err_set(err, -ENAMETOOLONG,
			       "%s: path too long for a socket; choose a "
			       "shorter --socket",
			       path);
	strcpy(a.sun_path, path);
	r = clear_place(&a, err);
	if (r < 0)
		return r;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_set(err, -errno, "socket: %s", strerror(errno));
	/* by the umask, so that the mode is right from bind(2) on */
	mask = umask((mode_t)~mode & 0777);
	r = bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 ? -errno : 0;
	umask(mask);
	if (r == 0 && listen(fd, SOMAXCONN) < 0) {
		r = -errno;
		unlink(path);
	}
	if (r < 0) {
		close(fd);
		return err_set(err, r, "%s: %s", path, strerror(-r));
	}
	*ret_fd = fd;
	*ret_place = lstat(path, &st) == 0
			     ? (struct place){ st.st_dev, st.st_ino }
			     : (struct place){ 0 };
	return 0;
}
