/* SPDX-License-Identifier: MIT */
/*
 * What a path leads to is opened with O_PATH first and then, if it is a regular
 * file, again by /proc/self/fd: so nothing else than a regular file is opened,
 * whoever changes the folder meanwhile.
 */
#include "fs/upper/upper_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <utlist.h>

#include "common/thread.h"
#include "common/util.h"

enum { OPEN_FLAGS = O_ACCMODE | O_TRUNC | O_SYNC | O_DSYNC | O_NOATIME };

struct upper_fd_path upper_fd_path(int fd)
{
	struct upper_fd_path p;

	snprintf(p.text, sizeof(p.text), "/proc/self/fd/%d", fd);
	return p;
}

int upper_chmod(int fd, mode_t mode)
{
	return chmod(upper_fd_path(fd).text, mode & 07777) < 0 ? -errno : 0;
}

static int fd_of(struct upper *u, uint64_t ino)
{
	LOCK_SCOPE(&u->paths);

	return upper_fd(u, ino);
}

/* --- open files ----------------------------------------------------------- */

/* A write or an O_TRUNC ends set-user-ID and set-group-ID, as the kernel does
 * it elsewhere for whoever lacks CAP_FSETID: this process has it, as root, and
 * the kernel leaves it to us (FUSE_HANDLE_KILLPRIV). 1: there was some. */
static int drop_set_id(int fd, bool outsider)
{
	mode_t drop = S_ISUID;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	/* without the group's execute it marks a mandatory lock */
	if (st.st_mode & S_IXGRP || outsider)
		drop |= S_ISGID;
	if (!(st.st_mode & drop))
		return 0;
	if (fchmod(fd, st.st_mode & 07777 & ~drop) < 0 && errno != EPERM)
		return -errno;
	return 1; /* of another user's the kernel does it at the write */
}

int upper_drop_set_id(const struct upper_file *f, bool outsider)
{
	return drop_set_id(f->fd, outsider);
}

int upper_file_group(const struct upper_file *f, gid_t *ret)
{
	struct stat st;

	if (fstat(f->fd, &st) < 0)
		return -errno;
	*ret = st.st_gid;
	return 0;
}

static int open_regular(struct upper *u, uint64_t ino, int flags,
			bool *ret_cleared)
{
	_cleanup_close_ int at = fd_of(u, ino);
	bool cuts = flags & O_TRUNC;
	struct stat st;
	int fd, r;

	*ret_cleared = false;
	if (at < 0)
		return at;
	if (fstat(at, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ESTALE;
	if (u->space.capacity)
		flags &= ~O_TRUNC;
	fd = open(upper_fd_path(at).text, flags | O_CLOEXEC);
	/* of a file of another user, of a mount that is not root's */
	if (fd < 0 && errno == EPERM && flags & O_NOATIME)
		fd = open(upper_fd_path(at).text,
			  (flags & ~O_NOATIME) | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = cuts ? drop_set_id(fd, false) : 0;
	*ret_cleared = r > 0;
	if (r < 0)
		close(fd);
	return r < 0 ? r : fd;
}

int upper_adopt(struct upper *u, uint64_t ino, int fd, int flags,
		struct upper_file **ret)
{
	struct upper_file *f = calloc(1, sizeof(*f));
	struct upper_node *n = f ? upper_get(u, ino) : NULL;

	if (!n) {
		close(fd);
		free(f);
		return f ? -ESTALE : -ENOMEM;
	}
	f->fd = fd;
	f->node = n;
	f->syncs = flags & (O_SYNC | O_DSYNC);
	if (u->space.capacity) {
		f->space = &u->space;
		upper_space_open(f->space, &n->taken, fd);
	}
	pthread_mutex_lock(&u->lock);
	DL_APPEND(u->files, f);
	u->n_fds++;
	pthread_mutex_unlock(&u->lock);
	*ret = f;
	return 0;
}

int upper_open(struct upper *u, uint64_t ino, int flags,
	       struct upper_file **ret)
{
	/* an O_TRUNC, which a limit has to know of */
	const struct upper_change empty = { .uid = (uid_t)-1,
					    .gid = (gid_t)-1,
					    .times = { { 0, UTIME_OMIT },
						       { 0, UTIME_OMIT } } };
	bool cleared;
	int fd = open_regular(u, ino, flags & OPEN_FLAGS, &cleared), r;

	if (fd < 0)
		return fd;
	r = upper_adopt(u, ino, fd, flags, ret);
	if (r == 0)
		(*ret)->cleared = cleared;
	if (r == 0 && (*ret)->space && flags & O_TRUNC) {
		r = upper_change(u, ino, NULL, &empty);
		if (r < 0) {
			upper_close(u, *ret);
			*ret = NULL;
		}
	}
	return r;
}

void upper_close(struct upper *u, struct upper_file *f)
{
	pthread_mutex_lock(&u->lock);
	DL_DELETE(u->files, f);
	u->n_fds--;
	pthread_mutex_unlock(&u->lock);
	if (f->space)
		upper_space_close(f->space, &f->node->taken, f->fd);
	close(f->fd);
	upper_put(u, f->node);
	free(f);
}

size_t upper_left(const struct upper_file *f, size_t n, uint64_t offset)
{
	struct stat st;

	if (fstat(f->fd, &st) < 0 || offset >= (uint64_t)st.st_size)
		return 0;
	return MIN(n, (uint64_t)st.st_size - offset);
}

ssize_t upper_read(const struct upper_file *f, void *buf, size_t n,
		   uint64_t offset)
{
	return util_read_all(f->fd, buf, n, (int64_t)offset);
}

static ssize_t write_all(const struct upper_file *f, const void *buf, size_t n,
			 uint64_t offset)
{
	size_t done = 0;

	while (done < n) {
		ssize_t r = pwrite(f->fd, (const char *)buf + done, n - done,
				   (off_t)(offset + done));

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0 && !done)
			return -errno;
		if (r <= 0)
			break;
		done += (size_t)r;
	}
	return (ssize_t)done;
}

ssize_t upper_reserve(const struct upper_file *f, size_t n, uint64_t offset)
{
	return f->space ? upper_space_grow(f->space, &f->node->taken, offset, n,
					   false)
			: (ssize_t)n;
}

ssize_t upper_write(const struct upper_file *f, const void *buf, size_t n,
		    uint64_t offset)
{
	ssize_t r = buf ? write_all(f, buf, n, offset) : 0;

	if (f->space)
		upper_space_settle(f->space, &f->node->taken, f->fd);
	return r;
}

int upper_allocate(const struct upper_file *f, int mode, uint64_t offset,
		   uint64_t bytes)
{
	bool keeps = mode & FALLOC_FL_KEEP_SIZE;
	ssize_t r = 0;

	if (f->space && keeps && !(mode & FALLOC_FL_PUNCH_HOLE) &&
	    bytes > upper_left(f, bytes, offset))
		r = -EOPNOTSUPP; /* the size alone says what a file has */
	if (r == 0 && f->space)
		r = upper_space_grow(f->space, &f->node->taken,
				     keeps ? 0 : offset, keeps ? 0 : bytes,
				     true);
	if (r < 0)
		return (int)r;
	r = fallocate(f->fd, mode, (off_t)offset, (off_t)bytes) < 0 ? -errno
								    : 0;
	if (f->space)
		upper_space_settle(f->space, &f->node->taken, f->fd);
	return (int)r;
}

int64_t upper_seek(const struct upper_file *f, uint64_t offset, int whence)
{
	off_t at = lseek(f->fd, (off_t)offset, whence);

	return at < 0 ? -errno : at;
}

/* --- syncs ---------------------------------------------------------------- */

/* fsync(2) of a folder by its path in ours; one that has gone needs none. */
static int sync_path(const struct upper *u, const char *path)
{
	_cleanup_close_ int fd =
		beneath_open(&u->dir, path, O_RDONLY | O_DIRECTORY, false);

	if (fd < 0)
		return fd == -ENOENT || fd == -ENOTDIR ? 0 : fd;
	return fsync(fd) < 0 ? -errno : 0;
}

/* The folders that the name of a node needs: all up to ours. */
static int sync_folders(struct upper *u, uint64_t ino)
{
	char path[PATH_MAX], *slash;
	int r;

	pthread_mutex_lock(&u->paths);
	r = upper_path_of(u, ino, NULL, path);
	pthread_mutex_unlock(&u->paths);
	while (r == 0 && (slash = strrchr(path, '/'))) {
		*slash = 0;
		r = sync_path(u, path);
	}
	return r < 0 ? r : sync_path(u, ".");
}

/* Atomically: was it set? */
static bool swap_unsynced(struct upper *u, struct upper_node *n, bool value)
{
	bool was;

	LOCK_SCOPE(&u->lock);
	was = n->unsynced && n->fd < 0;
	n->unsynced = value;
	return was;
}

int upper_sync(struct upper *u, struct upper_file *f, bool data)
{
	/* before the sync: a rename meanwhile sets it again */
	bool unsynced = swap_unsynced(u, f->node, false);
	int r = (data ? fdatasync(f->fd) : fsync(f->fd)) < 0 ? -errno : 0;

	if (r == 0 && unsynced)
		r = sync_folders(u, f->node->ino);
	if (r < 0 && unsynced)
		swap_unsynced(u, f->node, true);
	return r;
}

int upper_sync_folder(struct upper *u, uint64_t ino)
{
	_cleanup_close_ int at = fd_of(u, ino);
	_cleanup_close_ int fd = -1;

	if (at < 0) /* of the dataset, and nothing was made in it */
		return at == -ENOENT && !upper_has(ino) ? 0 : at;
	fd = openat(at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fsync(fd) < 0)
		return -errno;
	return sync_folders(u, ino);
}

/* --- attributes ----------------------------------------------------------- */

/* arbitrary: a bit that no number of a node of the tree has; programs compare
 * these numbers */
uint64_t upper_number(uint64_t real)
{
	return real | 1ull << 62;
}

int upper_stat(struct upper *u, uint64_t ino, struct stat *ret)
{
	_cleanup_close_ int fd = fd_of(u, ino);

	if (fd < 0)
		return fd;
	if (fstat(fd, ret) < 0)
		return -errno;
	ret->st_ino = upper_number(ret->st_ino);
	return 0;
}

int upper_access(struct upper *u, uint64_t ino, int mask)
{
	_cleanup_close_ int fd = fd_of(u, ino);
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) == 0 && S_ISLNK(st.st_mode))
		return 0;
	return faccessat(AT_FDCWD, upper_fd_path(fd).text, mask, AT_EACCESS) < 0
		       ? -errno
		       : 0;
}

int upper_readlink(struct upper *u, uint64_t ino, char *buf, size_t n)
{
	_cleanup_close_ int fd = fd_of(u, ino);
	ssize_t got;

	if (fd < 0)
		return fd;
	got = readlinkat(fd, "", buf, n - 1);
	if (got < 0)
		return -errno;
	buf[got] = 0;
	return 0;
}

static int set_size(const struct upper_file *f, int64_t bytes)
{
	if (f->space)
		return upper_space_truncate(f->space, &f->node->taken, f->fd,
					    (uint64_t)bytes);
	return ftruncate(f->fd, bytes) < 0 ? -errno : 0;
}

/* Of a file that is opened for it, by `at`. */
static int set_size_of(struct upper *u, uint64_t ino, int at, int64_t bytes)
{
	int fd = open(upper_fd_path(at).text, O_WRONLY | O_CLOEXEC);
	struct upper_file *f;
	int r;

	if (fd < 0)
		return -errno;
	r = upper_adopt(u, ino, fd, O_WRONLY, &f);
	if (r < 0)
		return r;
	r = set_size(f, bytes);
	upper_close(u, f);
	return r;
}

int upper_change(struct upper *u, uint64_t ino, const struct upper_file *f,
		 const struct upper_change *c)
{
	_cleanup_close_ int fd = fd_of(u, ino);
	struct stat st;
	int r = 0;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (S_ISLNK(st.st_mode) && c->has_mode)
		return -EOPNOTSUPP;
	if (c->bytes >= 0)
		r = !S_ISREG(st.st_mode) ? -EINVAL
		    : f			 ? set_size(f, c->bytes)
					 : set_size_of(u, ino, fd, c->bytes);
	/* the owner first: a change of it clears set-user-ID */
	if (r == 0 && (c->uid != (uid_t)-1 || c->gid != (gid_t)-1) &&
	    fchownat(fd, "", c->uid, c->gid, AT_EMPTY_PATH) < 0)
		r = -errno;
	if (r == 0 && c->has_mode)
		r = upper_chmod(fd, c->mode);
	if (r == 0 &&
	    (c->times[0].tv_nsec != UTIME_OMIT ||
	     c->times[1].tv_nsec != UTIME_OMIT) &&
	    utimensat(fd, "", c->times, AT_EMPTY_PATH) < 0)
		r = -errno;
	return r;
}

int upper_statvfs(struct upper *u, struct statvfs *ret)
{
	if (fstatvfs(u->dir.fd, ret) < 0)
		return -errno;
	if (u->space.capacity)
		upper_space_statvfs(&u->space, ret);
	return 0;
}

/* --- extended attributes -------------------------------------------------- */

ssize_t upper_get_xattr(struct upper *u, uint64_t ino, const char *name,
			void *value, size_t n)
{
	_cleanup_close_ int fd = fd_of(u, ino);
	ssize_t got;

	if (fd < 0)
		return fd;
	got = getxattr(upper_fd_path(fd).text, name, value, n);
	return got < 0 ? -errno : got;
}

ssize_t upper_list_xattr(struct upper *u, uint64_t ino, char *list, size_t n)
{
	_cleanup_close_ int fd = fd_of(u, ino);
	ssize_t got;

	if (fd < 0)
		return fd;
	got = listxattr(upper_fd_path(fd).text, list, n);
	return got < 0 ? -errno : got;
}

int upper_set_xattr(struct upper *u, uint64_t ino, const char *name,
		    const void *value, size_t n, int flags)
{
	_cleanup_close_ int fd = fd_of(u, ino);
	int r;

	if (fd < 0)
		return fd;
	r = value ? setxattr(upper_fd_path(fd).text, name, value, n, flags)
		  : removexattr(upper_fd_path(fd).text, name);
	return r < 0 ? -errno : 0;
}
