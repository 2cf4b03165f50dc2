/* SPDX-License-Identifier: MIT */
#include "fs/upper/upper.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>

#include <utlist.h>

#include "common/thread.h"
#include "common/util.h"

/* --- life ----------------------------------------------------------------- */

/* Is `fd`, or a folder above it, one that only its owner may enter, this user
 * or root? Then nobody else reaches what is in it. 0, -EACCES or -errno. */
static int check_closed(int fd)
{
	_cleanup_close_ int at = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	struct stat st, above;

	while (at >= 0 && fstat(at, &st) == 0) {
		int up;

		if (!(st.st_mode & (S_IXGRP | S_IXOTH)) &&
		    (st.st_uid == 0 || st.st_uid == geteuid()))
			return 0;
		up = openat(at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (up < 0 || fstat(up, &above) < 0) {
			int r = -errno;

			if (up >= 0)
				close(up);
			return r;
		}
		close(at);
		at = up;
		if (above.st_dev == st.st_dev && above.st_ino == st.st_ino)
			return -EACCES; /* the root */
	}
	return -errno;
}

int upper_new(const char *dir, const struct tree *tree, struct upper **ret,
	      struct err *err)
{
	/* not O_PATH: it is locked */
	_cleanup_close_ int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct rlimit fds;
	struct upper *u;
	int r;

	if (fd < 0 || getrlimit(RLIMIT_NOFILE, &fds) < 0)
		return err_set(err, -errno, "--writable %s: %s", dir,
			       strerror(errno));
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return err_set(err, -errno, "--writable %s: %s", dir,
			       errno == EWOULDBLOCK ? "another mount uses it"
						    : strerror(errno));
	if (faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) < 0)
		return err_set(err, -errno, "--writable %s: %s", dir,
			       strerror(errno));
	/* in a folder of their own they could exchange what is changed here */
	r = tree->shared ? check_closed(fd) : 0;
	if (r < 0)
		return err_set(err, r, "--writable %s: %s", dir,
			       r == -EACCES ? "with allow_other it, or a "
					      "folder above it, must be closed "
					      "to other users (chmod go-x)"
					    : strerror(-r));
	u = calloc(1, sizeof(*u));
	if (!u)
		return err_set(err, -ENOMEM, "out of memory");
	beneath_init(&u->dir, TAKE_FD(fd));
	u->tree = tree;
	u->most_fds = fds.rlim_cur;
	pthread_mutex_init(&u->paths, NULL);
	pthread_mutex_init(&u->lock, NULL);
	upper_space_init(&u->space);
	*ret = u;
	return 0;
}

int upper_limit(struct upper *u, uint64_t bytes, double scale, struct err *err)
{
	return upper_space_limit(&u->space, bytes, scale, u->tree, u->dir.fd,
				 err);
}

void upper_free(struct upper *u)
{
	struct upper_file *f, *next;
	struct upper_list *l, *next_list;

	if (!u)
		return;
	DL_FOREACH_SAFE (u->lists, l, next_list)
		upper_list_free(u, l);
	DL_FOREACH_SAFE (u->files, f, next)
		upper_close(u, f);
	upper_free_nodes(u);
	pthread_mutex_destroy(&u->paths);
	pthread_mutex_destroy(&u->lock);
	upper_space_fini(&u->space);
	close(u->dir.fd);
	free(u);
}

/* --- folders; under `paths` ----------------------------------------------- */

/* Opens a folder, which is made if it is missing, with what it has in the
 * dataset, and so that this process may write to it. */
static int make_folder(int dir, const struct tree *tree, uint32_t node)
{
	const struct tree_node *n = &tree->nodes[node];
	const char *name = tree_name(tree, node);
	bool made = mkdirat(dir, name, S_IRWXU) == 0;
	_cleanup_close_ int fd = -1;

	if (!made && errno != EEXIST)
		return -errno;
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	/* the owner only where this process may give files away */
	if (made && tree->shared && fchown(fd, n->uid, n->gid) < 0 &&
	    errno != EPERM)
		return -errno;
	if (made && fchmod(fd, (n->mode & 0777) | S_IRWXU) < 0)
		return -errno;
	return TAKE_FD(fd);
}

/* The counterpart of a folder of the dataset, with all those above it. */
static int make_folders(struct upper *u, uint32_t node)
{
	uint32_t way[PATH_MAX / 2]; /* the deepest path */
	int fd = beneath_open(&u->dir, ".", O_PATH | O_DIRECTORY, false);
	size_t n = 0;

	for (; node != TREE_ROOT; node = u->tree->nodes[node].parent) {
		if (n == ARRAY_SIZE(way)) {
			close(fd);
			return -ENAMETOOLONG;
		}
		way[n++] = node;
	}
	while (fd >= 0 && n) {
		int next = make_folder(fd, u->tree, way[--n]);

		close(fd);
		fd = next;
	}
	return fd;
}

/* An O_PATH descriptor, or one that can as much. */
static int folder_fd(struct upper *u, uint64_t ino, bool make)
{
	int fd = upper_fd(u, ino);

	if (fd == -ENOENT && make && !upper_has(ino))
		fd = make_folders(u, (uint32_t)(ino - 1));
	return fd;
}

/* --- names ---------------------------------------------------------------- */

/* Of what `fd` is, by a name that leads to it. */
static int enter(struct upper *u, const struct upper_at *at, int fd, bool fresh,
		 struct upper_entry *ret)
{
	if (fstat(fd, &ret->st) < 0)
		return -errno;
	ret->ino = upper_note(u, at->folder, at->name, &ret->st, fresh);
	ret->st.st_ino = upper_number(ret->st.st_ino);
	return ret->ino ? 0 : -ENOMEM;
}

static int lookup(struct upper *u, const struct upper_at *at,
		  struct upper_entry *ret)
{
	_cleanup_close_ int fd = -1;
	char path[PATH_MAX];
	int r = upper_path_of(u, at->folder, at->name, path);

	if (r < 0)
		return r;
	fd = beneath_open(&u->dir, path, O_PATH, false);
	/* a file where the dataset has a folder */
	if (fd == -ENOTDIR && !upper_has(at->folder))
		return -ENOENT;
	return fd < 0 ? fd : enter(u, at, fd, false, ret);
}

int upper_lookup(struct upper *u, const struct upper_at *at,
		 struct upper_entry *ret)
{
	LOCK_SCOPE(&u->paths);

	return lookup(u, at, ret);
}

/* The owner first: a change of it clears set-user-ID. In a folder with
 * set-group-ID the group is that of the folder. */
static int set_owner(int dir, int fd, const struct upper_owner *owner)
{
	struct stat st;

	if (!owner->set)
		return 0;
	if (fstat(dir, &st) < 0)
		return -errno;
	return fchownat(fd, "", owner->uid,
			st.st_mode & S_ISGID ? (gid_t)-1 : owner->gid,
			AT_EMPTY_PATH) < 0
		       ? -errno
		       : 0;
}

/* Of what was just made: its owner and mode, whatever the umask of this process
 * is. Its entry. */
static int settle_entry(struct upper *u, const struct upper_at *at, int dir,
			int fd, mode_t mode, const struct upper_owner *owner,
			struct upper_entry *ret)
{
	int r = set_owner(dir, fd, owner);
	struct stat st;

	if (r == 0 && fstat(fd, &st) < 0)
		r = -errno;
	if (S_ISDIR(st.st_mode))
		mode |= st.st_mode & S_ISGID;
	if (r == 0 && !S_ISLNK(st.st_mode))
		r = upper_chmod(fd, mode);
	return r < 0 ? r : enter(u, at, fd, true, ret);
}

/* May this name be made? -ENOSPC; -EEXIST: it is there. */
static int check_space(struct upper *u, int dir, const char *name)
{
	struct stat st;
	int r = u->space.capacity ? upper_space_check(&u->space) : 0;

	return r < 0 && fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0
		       ? -EEXIST
		       : r;
}

/* A new file; its descriptor. -EEXIST. */
static int create(struct upper *u, const struct upper_at *at, mode_t mode,
		  int flags, const struct upper_owner *owner,
		  struct upper_entry *ret)
{
	_cleanup_close_ int dir = folder_fd(u, at->folder, true);
	_cleanup_close_ int fd = -1;
	int r;

	r = dir < 0 ? dir : check_space(u, dir, at->name);
	if (r < 0)
		return r;
	fd = openat(dir, at->name,
		    (flags & (O_ACCMODE | O_SYNC | O_DSYNC | O_NOATIME)) |
			    O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		    S_IRUSR | S_IWUSR);
	if (fd < 0)
		return -errno;
	if (u->space.capacity)
		upper_space_fresh(&u->space, fd);
	r = settle_entry(u, at, dir, fd, mode, owner, ret);
	if (r < 0) {
		unlinkat(dir, at->name, 0);
		return r;
	}
	return TAKE_FD(fd);
}

int upper_create(struct upper *u, const struct upper_at *at, mode_t mode,
		 int flags, const struct upper_owner *owner,
		 struct upper_entry *ret, struct upper_file **ret_file)
{
	int fd, r;

	pthread_mutex_lock(&u->paths);
	fd = create(u, at, mode, flags, owner, ret);
	r = fd;
	if (fd == -EEXIST && !(flags & O_EXCL))
		r = lookup(u, at, ret);
	pthread_mutex_unlock(&u->paths);
	if (r < 0)
		return r;
	r = fd < 0 ? upper_open(u, ret->ino, flags, ret_file)
		   : upper_adopt(u, ret->ino, fd, flags, ret_file);
	if (r < 0) {
		upper_forget(u, ret->ino, 1);
		ret->ino = 0;
	}
	return r;
}

/* What is no regular file, by the type in `mode`; `target` of a link. */
static int make(struct upper *u, const struct upper_at *at, const char *target,
		mode_t mode, dev_t dev, const struct upper_owner *owner,
		struct upper_entry *ret)
{
	_cleanup_close_ int dir = folder_fd(u, at->folder, true);
	_cleanup_close_ int fd = -1;
	int r;

	r = dir < 0 ? dir : check_space(u, dir, at->name);
	if (r < 0)
		return r;
	if (target)
		r = symlinkat(target, dir, at->name);
	else if (S_ISDIR(mode))
		r = mkdirat(dir, at->name, S_IRWXU);
	else
		r = mknodat(dir, at->name, (mode & S_IFMT) | S_IRUSR, dev);
	if (r < 0)
		return -errno;
	fd = openat(dir, at->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	r = fd < 0 ? -errno : settle_entry(u, at, dir, fd, mode, owner, ret);
	if (r < 0)
		unlinkat(dir, at->name, S_ISDIR(mode) ? AT_REMOVEDIR : 0);
	return r;
}

int upper_mkdir(struct upper *u, const struct upper_at *at, mode_t mode,
		const struct upper_owner *owner, struct upper_entry *ret)
{
	LOCK_SCOPE(&u->paths);

	return make(u, at, NULL, S_IFDIR | (mode & 07777), 0, owner, ret);
}

int upper_symlink(struct upper *u, const struct upper_at *at,
		  const char *target, const struct upper_owner *owner,
		  struct upper_entry *ret)
{
	LOCK_SCOPE(&u->paths);

	return make(u, at, target, S_IFLNK, 0, owner, ret);
}

int upper_mknod(struct upper *u, const struct upper_at *at, mode_t mode,
		dev_t dev, const struct upper_owner *owner,
		struct upper_entry *ret)
{
	LOCK_SCOPE(&u->paths);

	return make(u, at, NULL, mode, dev, owner, ret);
}

/* unlinkat(2), or renameat2(2) to a name with `to` in `to_dir`, after which
 * `loser` (-1: no file) has one name less. */
static int drop_name(struct upper *u, int dir, const char *name, unsigned flags,
		     int to_dir, const char *to, int loser)
{
	int r;

	LOCK_SCOPE(&u->space.lock);
	r = to ? renameat2(dir, name, to_dir, to, flags)
	       : unlinkat(dir, name, (int)flags);
	r = r < 0 ? -errno : 0;
	if (r == 0 && u->space.capacity)
		upper_space_gone(&u->space, loser, upper_is_open(u, loser));
	return r;
}

/* linkat(2) of the file `fd`. */
static int add_link(struct upper *u, int fd, int dir, const char *name)
{
	int r = check_space(u, dir, name);

	if (r < 0)
		return r;
	LOCK_SCOPE(&u->space.lock);
	if (u->space.capacity)
		r = upper_space_named(&u->space, fd, upper_is_open(u, fd));
	if (r < 0)
		return r;
	r = linkat(AT_FDCWD, upper_fd_path(fd).text, dir, name,
		   AT_SYMLINK_FOLLOW) < 0
		    ? -errno
		    : 0;
	if (r < 0 && u->space.capacity)
		upper_space_gone(&u->space, fd, upper_is_open(u, fd));
	return r;
}

int upper_link(struct upper *u, uint64_t ino, const struct upper_at *at,
	       struct upper_entry *ret)
{
	LOCK_SCOPE(&u->paths);
	_cleanup_close_ int dir = folder_fd(u, at->folder, true);
	_cleanup_close_ int fd = dir < 0 ? -1 : upper_fd(u, ino);
	int r;

	if (dir < 0 || fd < 0)
		return dir < 0 ? dir : fd;
	r = add_link(u, fd, dir, at->name);
	if (r < 0)
		return r;
	r = enter(u, at, fd, false, ret);
	if (r < 0)
		drop_name(u, dir, at->name, 0, -1, NULL, fd);
	return r;
}

/* What the kernel knows by a name that is about to go, so that it can still be
 * used: an O_PATH descriptor; -1: nothing needs it. */
static int hold(struct upper *u, int dir, const struct upper_at *at, int *ret)
{
	*ret = -1;
	if (!u->space.capacity && !upper_knows(u, at->folder, at->name))
		return 0;
	*ret = openat(dir, at->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	return *ret < 0 && errno != ENOENT ? -errno : 0;
}

static int remove_name(struct upper *u, const struct upper_at *at, bool folder)
{
	_cleanup_close_ int dir = folder_fd(u, at->folder, false);
	_cleanup_close_ int held = -1;
	int r;

	if (dir < 0)
		return dir;
	r = hold(u, dir, at, &held);
	if (r < 0)
		return r;
	r = drop_name(u, dir, at->name, folder ? AT_REMOVEDIR : 0, -1, NULL,
		      held);
	if (r < 0)
		return r;
	upper_unname(u, at->folder, at->name, TAKE_FD(held));
	return 0;
}

int upper_remove(struct upper *u, const struct upper_at *at, bool folder)
{
	LOCK_SCOPE(&u->paths);

	return remove_name(u, at, folder);
}

/* Is `fd` the file of this name? */
static bool is_of(int fd, int dir, const char *name)
{
	struct stat a, b;

	return fd >= 0 && fstat(fd, &a) == 0 &&
	       fstatat(dir, name, &b, AT_SYMLINK_NOFOLLOW) == 0 &&
	       a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static int rename_name(struct upper *u, const struct upper_at *from,
		       const struct upper_at *to, unsigned flags)
{
	_cleanup_close_ int dir = folder_fd(u, from->folder, false);
	_cleanup_close_ int to_dir = -1;
	_cleanup_close_ int held = -1;
	_cleanup_free_ struct upper_name *fresh = NULL;
	bool keeps;
	int r;

	if (dir < 0)
		return dir;
	to_dir = folder_fd(u, to->folder, true);
	if (to_dir < 0)
		return to_dir;
	r = hold(u, to_dir, to, &held);
	if (r < 0)
		return r;
	fresh = upper_name_new(to->folder, to->name);
	if (!fresh)
		return -ENOMEM;
	/* rename(2) keeps both names of one file */
	keeps = flags & RENAME_EXCHANGE || is_of(held, dir, from->name);
	r = drop_name(u, dir, from->name, flags, to_dir, to->name,
		      keeps ? -1 : held);
	if (r < 0)
		return r;
	if (flags & RENAME_EXCHANGE) {
		upper_swap(u, from->folder, from->name, to->folder, to->name);
		return 0;
	}
	upper_unname(u, to->folder, to->name, TAKE_FD(held));
	upper_rekey(u, from->folder, from->name, TAKE_PTR(fresh));
	return 0;
}

int upper_rename(struct upper *u, const struct upper_at *from,
		 const struct upper_at *to, unsigned flags)
{
	if (flags & ~(unsigned)(RENAME_NOREPLACE | RENAME_EXCHANGE))
		return -EINVAL;
	LOCK_SCOPE(&u->paths);
	return rename_name(u, from, to, flags);
}
