/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/program/local_socket.h"
#include "common/util.h"

int local_socket_address(const char *path, struct sockaddr_un *ret,
			 struct err *err)
{
	*ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (strlen(path) >= sizeof(ret->sun_path))
		return err_set(err, -ENAMETOOLONG,
			       "%s: path too long for a socket; choose a "
			       "shorter one",
			       path);
	strcpy(ret->sun_path, path);
	return 0;
}

/* The same folder's .NAME with this behind it, malloc'ed. -ENOMEM. */
static int beside(const char *path, const char *end, char **ret,
		  struct err *err)
{
	const char *slash = strrchr(path, '/');
	int folder = slash ? (int)(slash + 1 - path) : 0;

	if (asprintf(ret, "%.*s.%s%s", folder, path, path + folder, end) >= 0)
		return 0;
	*ret = NULL;
	return err_set(err, -ENOMEM, "out of memory");
}

static int address_before(const char *path, struct sockaddr_un *ret,
			  struct err *err)
{
	_cleanup_free_ char *at = NULL;
	int r = beside(path, "", &at, err);

	return r < 0 ? r : local_socket_address(at, ret, err);
}

/* The file of the lock, or -ESTALE if whoever had it has removed it. */
static int lock_file(const char *at)
{
	_cleanup_close_ int fd =
		open(at, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
		     0600);
	struct stat st, there;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid())
		return -EACCES;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? -EADDRINUSE : -errno;
	if (lstat(at, &there) < 0 || there.st_ino != st.st_ino ||
	    there.st_dev != st.st_dev)
		return -ESTALE;
	return TAKE_FD(fd);
}

/*
 * One server starts at a path at a time, so that none removes the file of
 * another that is about to listen. The lock is a file of its own, .NAME.lock,
 * there for the time of a start: a socket cannot be locked, and a folder by
 * anyone who may list it. No server waits for it, whoever has it.
 */
static int lock(const char *path, char **ret_at, struct err *err)
{
	struct stat st;
	int fd, r = beside(path, ".lock", ret_at, err);

	if (r < 0)
		return r;
	do
		fd = lock_file(*ret_at);
	while (fd == -ESTALE);
	if (fd == -EADDRINUSE)
		return err_set(err, fd, "%s: another server starts there",
			       path);
	if (fd < 0 && lstat(*ret_at, &st) < 0)
		return err_set(err, fd, "%s: %s", path, strerror(-fd));
	if (fd < 0) /* what another put there */
		return err_set(err, fd, "%s: %s; remove it", *ret_at,
			       strerror(-fd));
	return fd;
}

static int new_socket(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	return fd < 0 ? -errno : fd;
}

/* Remove the socket of a dead server. */
static int clear(const struct sockaddr_un *a, struct err *err)
{
	_cleanup_close_ int fd = -1;
	struct stat st;

	if (lstat(a->sun_path, &st) < 0)
		return 0;
	if (!S_ISSOCK(st.st_mode))
		return err_set(err, -EADDRINUSE,
			       "%s: exists and is not a socket; choose another "
			       "path",
			       a->sun_path);
	/* EACCES: a server may listen there and refuse us */
	fd = new_socket();
	if (fd < 0)
		return err_set(err, fd, "socket: %s", strerror(-fd));
	if (connect(fd, (const struct sockaddr *)a, sizeof(*a)) == 0 ||
	    errno != ECONNREFUSED)
		return err_set(err, -EADDRINUSE,
			       "%s: another server listens on it; choose "
			       "another path",
			       a->sun_path);
	if (unlink(a->sun_path) < 0)
		return err_set(err, -errno, "%s: %s", a->sun_path,
			       strerror(errno));
	return 0;
}

/* Bind, listen and only then take the name. -errno. */
static int take_name(int fd, const struct sockaddr_un *before, const char *path,
		     mode_t mode, struct local_socket *ret)
{
	/* by the umask, so that the mode is right from bind(2) on */
	mode_t mask = umask((mode_t)~mode & 0777);
	int r = bind(fd, (const struct sockaddr *)before, sizeof(*before)) < 0
			? -errno
			: 0;
	struct stat st;

	umask(mask);
	if (r < 0)
		return r;
	if (listen(fd, SOMAXCONN) < 0 || lstat(before->sun_path, &st) < 0 ||
	    link(before->sun_path, path) < 0)
		r = errno == EEXIST ? -EADDRINUSE : -errno;
	unlink(before->sun_path);
	if (r == 0)
		*ret = (struct local_socket){ st.st_dev, st.st_ino };
	return r;
}

static int listen_as(const struct sockaddr_un *before, const char *path,
		     mode_t mode, struct local_socket *ret, struct err *err)
{
	_cleanup_close_ int fd = new_socket();
	int r;

	if (fd < 0)
		return err_set(err, fd, "socket: %s", strerror(-fd));
	r = take_name(fd, before, path, mode, ret);
	if (r < 0)
		return err_set(err, r, "%s: %s", path, strerror(-r));
	return TAKE_FD(fd);
}

int local_socket_listen(const char *path, mode_t mode, struct local_socket *ret,
			struct err *err)
{
	_cleanup_close_ int locked = -1;
	_cleanup_free_ char *lock_at = NULL;
	struct sockaddr_un at, before;
	int r = local_socket_address(path, &at, err);

	if (r == 0)
		r = address_before(path, &before, err);
	if (r < 0)
		return r;
	locked = lock(path, &lock_at, err);
	if (locked < 0)
		return locked;
	r = clear(&at, err);
	if (r == 0)
		r = clear(&before, err);
	if (r == 0)
		r = listen_as(&before, path, mode, ret, err);
	unlink(lock_at);
	return r;
}

bool local_socket_there(const char *path, const struct local_socket *s)
{
	struct stat st;

	return s->ino && lstat(path, &st) == 0 && st.st_ino == s->ino &&
	       st.st_dev == s->dev;
}

void local_socket_leave(const char *path, const struct local_socket *s)
{
	if (local_socket_there(path, s))
		unlink(path);
}
