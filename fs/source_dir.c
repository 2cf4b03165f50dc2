/* SPDX-License-Identifier: MIT */
/*
 * A directory as the source. Files are opened for each read of the backend,
 * by path below the directory's descriptor: a mount of a million files holds
 * one descriptor, and a cache hit opens nothing.
 *
 * `nowait` uses what the kernel has in memory: openat2 with RESOLVE_CACHED
 * for the path, preadv2 with RWF_NOWAIT for the bytes. Either answers EAGAIN
 * where it would have to wait for the disk.
 */
#include "fs/source.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/units.h"
#include "common/util.h"

struct dir {
	int fd;
	char *path;
};

static int dir_init(void *state, const char *arg, struct err *err)
{
	struct dir *d = state;

	d->path = realpath(arg, NULL);
	d->fd = d->path ? open(d->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
			: -1;
	if (d->fd < 0)
		return err_set(err, -errno, "%s: %s", arg, strerror(errno));
	return 0;
}

static void dir_fini(void *state)
{
	struct dir *d = state;

	if (d->fd >= 0)
		close(d->fd);
	free(d->path);
}

struct listing {
	struct tree_child *children;
	size_t n, allocated;
};

static void listing_fini(struct listing *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->children[i].name);
	free(l->children);
}

static int64_t mtime_of(const struct stat *st)
{
	return st->st_mtim.tv_sec * (int64_t)NS_PER_S + st->st_mtim.tv_nsec;
}

static int listing_add(struct listing *l, int dirfd, const char *name)
{
	struct stat st;

	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno; /* gone meanwhile */
	/* a loader reads files; sockets and devices are not shown */
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode) &&
	    !S_ISLNK(st.st_mode))
		return 0;
	if (l->n == l->allocated) {
		size_t want = l->allocated ? 2 * l->allocated : 64;
		void *p = realloc(l->children, want * sizeof(*l->children));

		if (!p)
			return -ENOMEM;
		l->children = p;
		l->allocated = want;
	}
	char *copy = strdup(name);

	if (!copy)
		return -ENOMEM;
	l->children[l->n++] = (struct tree_child){
		.name = copy,
		.bytes = S_ISDIR(st.st_mode) ? 0 : (uint64_t)st.st_size,
		.mtime_ns = mtime_of(&st),
		/* nobody writes through the mount */
		.mode = st.st_mode & ~0222u,
	};
	return 0;
}

static int list(int dirfd, struct listing *l)
{
	DIR *stream = fdopendir(dirfd);
	struct dirent *entry;
	int r = 0;

	if (!stream) {
		r = -errno;
		close(dirfd);
		return r;
	}
	while (r == 0 && (errno = 0, entry = readdir(stream)))
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			r = listing_add(l, dirfd, entry->d_name);
	if (r == 0)
		r = -errno;
	closedir(stream);
	return r;
}

static int scan_one(struct dir *d, struct tree *tree, uint32_t node,
		    struct err *err)
{
	_cleanup_(listing_fini) struct listing l = { 0 };
	char path[PATH_MAX];
	int r = tree_path(tree, node, path, sizeof(path)), fd = -1;

	if (r == 0) {
		fd = openat(d->fd, path,
			    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		r = fd < 0 ? -errno : list(fd, &l);
	}
	if (r == 0)
		r = tree_add_children(tree, node, l.children, l.n);
	if (r < 0)
		return err_set(err, r, "%s/%s: %s", d->path, path,
			       strerror(-r));
	return 0;
}

static int dir_scan(void *state, struct tree *tree, struct err *err)
{
	struct dir *d = state;
	struct stat st;

	if (fstat(d->fd, &st) == 0)
		tree->nodes[TREE_ROOT].mtime_ns = mtime_of(&st);
	/* breadth first: the tree grows behind the node that is scanned */
	for (uint32_t i = 0; i < tree->n_nodes; i++) {
		int r = S_ISDIR(tree->nodes[i].mode) ? scan_one(d, tree, i, err)
						     : 0;

		if (r < 0)
			return r;
	}
	return 0;
}

/* A pipe that took the file's place must not keep us waiting for a writer. */
static int open_file(const struct dir *d, const char *path, bool nowait)
{
	struct open_how how = { .flags = O_RDONLY | O_NOFOLLOW | O_CLOEXEC |
					 O_NONBLOCK,
				.resolve = RESOLVE_CACHED };

	if (!nowait)
		return openat(d->fd, path, (int)how.flags);
	return (int)syscall(SYS_openat2, d->fd, path, &how, sizeof(how));
}

/* What says that the file is not the one that was scanned. */
static int stale(int r)
{
	switch (r) {
	case -ENOENT:
	case -ENOTDIR:
	case -EISDIR:
	case -ELOOP: /* a link, which is not followed */
	case -ENXIO: /* a socket */
	case -ESPIPE: /* a pipe */ return -ESTALE;
	default: return r;
	}
}

static int read_all(int fd, char *buf, size_t n, uint64_t offset, bool nowait)
{
	while (n) {
		struct iovec iov = { .iov_base = buf, .iov_len = n };
		ssize_t got = preadv2(fd, &iov, 1, (off_t)offset,
				      nowait ? RWF_NOWAIT : 0);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			return -ESTALE;
		buf += got;
		n -= (size_t)got;
		offset += (uint64_t)got;
	}
	return 0;
}

static int dir_read(void *state, const struct tree *tree, uint32_t node,
		    void *buf, size_t n, uint64_t offset, bool nowait)
{
	struct dir *d = state;
	_cleanup_close_ int fd = -1;
	char path[PATH_MAX];
	int r = tree_path(tree, node, path, sizeof(path));

	if (r < 0)
		return r;
	fd = open_file(d, path, nowait);
	r = fd < 0 ? -errno : read_all(fd, buf, n, offset, nowait);
	/* a file system or kernel without these: let a thread do it */
	if (nowait && (r == -EOPNOTSUPP || r == -ENOSYS || r == -EINVAL))
		return -EAGAIN;
	return stale(r);
}

static int dir_open(void *state, const struct tree *tree, uint32_t node)
{
	struct dir *d = state;
	char path[PATH_MAX];
	int r = tree_path(tree, node, path, sizeof(path)), fd;
	struct stat st;

	if (r < 0)
		return r;
	fd = open_file(d, path, false);
	if (fd < 0)
		return stale(-errno);
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	    (uint64_t)st.st_size == tree->nodes[node].bytes)
		return fd;
	close(fd);
	return -ESTALE;
}

static int dir_readlink(void *state, const struct tree *tree, uint32_t node,
			char *buf, size_t n)
{
	struct dir *d = state;
	char path[PATH_MAX];
	int r = tree_path(tree, node, path, sizeof(path));
	ssize_t got;

	if (r < 0)
		return r;
	got = readlinkat(d->fd, path, buf, n - 1);
	if (got < 0) /* EINVAL: no link any more */
		return errno == EINVAL ? -ESTALE : stale(-errno);
	buf[got] = 0;
	return 0;
}

const struct source_ops source_dir = {
	.plugin = { .name = "dir",
		    .summary = "a directory: PATH, or dir:PATH",
		    .state_size = sizeof(struct dir) },
	.init = dir_init,
	.fini = dir_fini,
	.scan = dir_scan,
	.read = dir_read,
	.open = dir_open,
	.readlink = dir_readlink,
};
