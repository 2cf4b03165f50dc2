/* SPDX-License-Identifier: MIT */
/*
 * A directory as the source. Each read of the source opens the file, by path
 * below the directory's descriptor: a mount of a million files holds one
 * descriptor, and a cache hit opens nothing.
 *
 * The mount may be root's and the directory a user's, who may rename and link
 * anything in it. So nothing is opened through a link (fs/source/beneath.h),
 * also not what links led to at the scan (fs/source/symlinks.h), and an opened
 * file must match the scan: same kind, same owner, and no fewer readers. This
 * refuses another user's file that was renamed to the name of a file that all
 * may read. In a mount that others see, it also refuses a file in a directory
 * closed to them that was renamed to the name of an open one, and a file that
 * an access control list now closes to some of them.
 *
 * `nowait` uses only what the kernel has in memory: RESOLVE_CACHED for the
 * path, preadv2 with RWF_NOWAIT for the bytes. Both fail with EAGAIN where they
 * would wait for the disk.
 */
#include "fs/source/source.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/system/walk.h"
#include "common/util.h"
#include "fs/source/acl.h"
#include "fs/source/beneath.h"
#include "fs/source/symlinks.h"

/* O_NONBLOCK: a pipe that replaced a file must not block us. */
enum { READ_FLAGS = O_RDONLY | O_NONBLOCK };

struct dir {
	struct beneath root;
	char *path; /* as it was given */
	struct symlinks links;
	struct tree_id *id; /* during the scan: by node */
	size_t n_ids;	    /* allocated */
	bool names;	    /* a file may have several */
};

static int dir_init(void *state, const char *arg, struct err *err)
{
	struct dir *d = state;

	d->root.fd = open(arg, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (d->root.fd < 0)
		return err_set(err, -errno, "%s: %s", arg, strerror(errno));
	beneath_init(&d->root, d->root.fd);
	d->path = strdup(arg);
	return d->path ? 0 : err_set(err, -ENOMEM, "out of memory");
}

static void dir_fini(void *state)
{
	struct dir *d = state;

	if (d->root.fd >= 0)
		close(d->root.fd);
	symlinks_fini(&d->links);
	free(d->id);
	free(d->path);
}

/* --- the scan ------------------------------------------------------------- */

static struct tree_child child_of(const struct walk_entry *e, char *name)
{
	return (struct tree_child){ .name = name,
				    .bytes = e->bytes,
				    .mtime = { .tv_sec = e->mtime_s,
					       .tv_nsec = e->mtime_ns },
				    .mode = e->mode,
				    .uid = e->uid,
				    .gid = e->gid };
}

/* A link that is followed is shown as what it leads to. 0, or -errno. */
static int follow(struct dir *d, struct tree *tree, uint32_t folder, int fd,
		  uint32_t node, struct tree_child *c, struct tree_id *id)
{
	struct stat st;
	int r = symlinks_follow(&d->links, tree, folder, fd, c->name, node,
				&st);

	if (r <= 0)
		return r;
	c->bytes = (uint64_t)st.st_size;
	c->mtime = st.st_mtim;
	c->mode = st.st_mode;
	c->uid = st.st_uid;
	c->gid = st.st_gid;
	*id = (struct tree_id){ st.st_dev, st.st_ino };
	d->names = true;
	return 0;
}

/* The entries are sorted by name, as the tree sorts them. */
static int add_children(struct dir *d, int fd, struct tree *tree, uint32_t node,
			const struct walk_list *l)
{
	_cleanup_free_ struct tree_child *v = calloc(l->n + 1, sizeof(*v));
	uint32_t first = tree->n_nodes, n = 0;
	int r = v ? util_reserve(&d->id, &d->n_ids, first + l->n,
				 sizeof(*d->id))
		  : -ENOMEM;

	for (size_t i = 0; r == 0 && i < l->n; i++) {
		const struct walk_entry *e = &l->entry[i];
		char *name = l->names + e->name;
		struct tree_id *id = &d->id[first + n];

		if (tree_hides(tree, node, name))
			continue;
		v[n] = child_of(e, name);
		*id = (struct tree_id){ e->dev, e->ino };
		d->names |= S_ISREG(e->mode) && e->n_names > 1;
		if (S_ISLNK(e->mode))
			r = follow(d, tree, node, fd, first + n, &v[n], id);
		else if (tree->shared)
			v[n].mode = acl_limit_file(v[n].mode, fd, name);
		n++;
	}
	return r < 0 ? r : tree_add_children(tree, node, v, n);
}

static int list(struct dir *d, int fd, struct tree *tree, uint32_t node)
{
	_cleanup_(walk_list_fini) struct walk_list l;
	int r = walk_list(fd, WALK_HIDDEN | WALK_FILES | WALK_FOLDERS, &l);

	return r < 0 ? r : add_children(d, fd, tree, node, &l);
}

/* Maps errors that mean "not the scanned file" to -ESTALE. */
static int stale(int r)
{
	switch (r) {
	case -ENOENT:
	case -ENOTDIR:
	case -EISDIR:
	case -ELOOP: /* a link, which is not followed */
	case -ENXIO: /* a socket */ return -ESTALE;
	default: return r;
	}
}

/* Does it match the scan? Size and time may differ. */
static bool is_same(const struct tree_node *n, const struct stat *st)
{
	return (st->st_mode & S_IFMT) == (n->mode & S_IFMT) &&
	       !(n->mode & 0555 & ~st->st_mode) && st->st_uid == n->uid &&
	       st->st_gid == n->gid;
}

/* An open file, of whose permissions the folders before it leave `left`. */
static int check(int opened, const struct tree *tree, uint32_t node,
		 uint32_t left, struct stat *ret)
{
	_cleanup_close_ int fd = opened;

	if (fd < 0)
		return stale(fd);
	if (fstat(fd, ret) < 0)
		return -errno;
	if (tree->shared)
		ret->st_mode = acl_limit_file(ret->st_mode, fd, NULL);
	ret->st_mode &= S_IFMT | left;
	return is_same(&tree->nodes[node], ret) ? TAKE_FD(fd) : -ESTALE;
}

static int open_in(const struct beneath *dir, const char *path,
		   const struct tree *tree, uint32_t node, int flags,
		   bool nowait, struct stat *ret)
{
	return check(beneath_open(dir, path, flags, nowait), tree, node, 0777,
		     ret);
}

static int open_link(const struct dir *d, const struct tree *tree,
		     const struct symlink *link, int flags, bool nowait,
		     struct stat *ret)
{
	const struct tree_node *n = &tree->nodes[link->node];
	uint32_t left;
	int fd = symlinks_open(&d->links, tree, link, n->uid, n->gid, flags,
			       nowait, &left);

	return check(fd, tree, link->node, left, ret);
}

/* Opens one directory after the other, from the source or from what the last
 * link on the path leads to: each must match the scan. */
static int open_step_by_step(const struct dir *d, const struct tree *tree,
			     uint32_t node, int flags, bool nowait,
			     struct stat *ret)
{
	const int folder = O_PATH | O_DIRECTORY;
	const struct symlink *k = symlinks_above(&d->links, tree, node);
	uint32_t top = k ? k->node : TREE_ROOT;
	_cleanup_close_ int fd = k ? open_link(d, tree, k,
					       node == top ? flags : folder,
					       nowait, ret)
				   : open_in(&d->root, ".", tree, TREE_ROOT,
					     folder, nowait, ret);
	struct beneath dir = d->root;
	uint32_t way[PATH_MAX / 2]; /* the deepest path */
	size_t n = 0;

	for (; node != top; node = tree->nodes[node].parent)
		way[n++] = node;
	while (fd >= 0 && n) {
		int next;

		dir.fd = fd;
		node = way[--n];
		next = open_in(&dir, tree_name(tree, node), tree, node,
			       n ? folder : flags, nowait, ret);
		close(fd);
		fd = next;
	}
	return TAKE_FD(fd);
}

/* A descriptor of a node and its status, or -errno; -ESTALE: it does not match
 * the scan. The directories of the path are checked only in a shared mount:
 * they can restrict only users other than the mounter. */
static int open_node(const struct dir *d, const struct tree *tree,
		     uint32_t node, int flags, bool nowait, struct stat *ret)
{
	const struct beneath *at = &d->root;
	const struct symlink *k;
	char path[PATH_MAX];
	int r;

	if (tree->shared && node != TREE_ROOT)
		return open_step_by_step(d, tree, node, flags, nowait, ret);
	k = symlinks_above(&d->links, tree, node);
	r = k ? symlinks_path(&d->links, tree, k, node, &at, path)
	      : tree_path(tree, node, path, sizeof(path));
	return r < 0 ? r : open_in(at, path, tree, node, flags, nowait, ret);
}

static bool too_deep(const struct tree *tree, uint32_t node)
{
	int depth = 0;

	for (; node != TREE_ROOT; node = tree->nodes[node].parent)
		depth++;
	return depth > WALK_DEPTH;
}

static int scan_one(struct dir *d, struct tree *tree, uint32_t node,
		    struct err *err)
{
	char path[PATH_MAX];
	struct stat st;
	_cleanup_close_ int fd =
		open_node(d, tree, node, O_RDONLY | O_DIRECTORY, false, &st);
	bool deep = too_deep(tree, node);
	int r = fd < 0 ? fd : deep ? -ELOOP : list(d, fd, tree, node);
	const char *why = deep ? WALK_TOO_DEEP : strerror(-r);

	if (r < 0 && tree_path(tree, node, path, sizeof(path)) < 0)
		return err_set(err, r, "%s/.../%s: %s", d->path,
			       tree_name(tree, node), why);
	return r < 0 ? err_set(err, r, "%s/%s: %s", d->path, path, why) : 0;
}

static int dir_scan(void *state, struct tree *tree, struct err *err)
{
	struct dir *d = state;
	struct stat st;
	struct tree_child root;
	int r;

	if (fstat(d->root.fd, &st) < 0)
		return err_set(err, -errno, "%s: %s", d->path, strerror(errno));
	root = (struct tree_child){ .mtime = st.st_mtim,
				    .mode = st.st_mode,
				    .uid = st.st_uid,
				    .gid = st.st_gid };
	if (tree->shared)
		root.mode = acl_limit_file(root.mode, d->root.fd, NULL);
	tree_set_root(tree, &root);
	r = symlinks_init(&d->links, d->root.fd, tree, err);
	/* breadth first: children are appended after the scanned node */
	for (uint32_t i = 0; r == 0 && i < tree->n_nodes; i++)
		if (S_ISDIR(tree->nodes[i].mode))
			r = scan_one(d, tree, i, err);
	if (r == 0 && d->names && tree_join_names(tree, d->id) < 0)
		r = err_set(err, -ENOMEM, "out of memory");
	free(d->id);
	d->id = NULL;
	d->n_ids = 0;
	return r;
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
	_cleanup_close_ int fd = -1;
	struct stat st;
	int r;

	fd = open_node(state, tree, node, READ_FLAGS, nowait, &st);
	r = fd < 0 ? fd : read_all(fd, buf, n, offset, nowait);
	/* the file system has no RWF_NOWAIT: leave the read to a thread */
	return nowait && r == -EOPNOTSUPP ? -EAGAIN : r;
}

static int dir_open(void *state, const struct tree *tree, uint32_t node)
{
	_cleanup_close_ int fd = -1;
	struct stat st;

	fd = open_node(state, tree, node, READ_FLAGS, false, &st);
	if (fd >= 0 && (uint64_t)st.st_size != tree->nodes[node].bytes)
		return -ESTALE;
	return TAKE_FD(fd);
}

static int dir_readlink(void *state, const struct tree *tree, uint32_t node,
			char *buf, size_t n)
{
	_cleanup_close_ int fd = -1;
	struct stat st;
	ssize_t got;

	fd = open_node(state, tree, node, O_PATH, false, &st);
	if (fd < 0)
		return fd;
	got = readlinkat(fd, "", buf, n - 1);
	if (got < 0)
		return -errno;
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
