/* SPDX-License-Identifier: MIT */
/*
 * A directory as the source. Each read of the source opens the file, by path
 * below the directory's descriptor: a mount of a million files holds one
 * descriptor, and a cache hit opens nothing.
 *
 * The mount may be root's and the directory a user's, who may rename and link
 * anything in it. So nothing is opened through a link (fs/source/beneath.h),
 * also not what links led to at the scan (symbolic links, below), and an opened
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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/err.h"
#include "common/system/walk.h"
#include "common/util.h"
#include "fs/source/acl.h"
#include "fs/source/beneath.h"
#include "fs/source/tree.h"

/*
 * --- symbolic links -------------------------------------------------------
 *
 * Symbolic links of a directory that are followed: what a link leads to is a
 * file or a folder of the tree.
 *
 *	at the scan	The kernel follows the link once. What it leads to has a
 *		path without links, which is kept. It must be below one of the
 *		anchors: the source and the folders that the user named ("/" in
 *		a mount for its owner alone).
 *	at a read	That path is opened below its anchor (beneath.h), so no
 *		link is followed any more: one that is changed meanwhile has no
 *		effect, one that replaces a part of the path is refused.
 *	others	In a shared tree a file behind folders that are closed to some
 *		users is shown without the permissions that these would need
 *		there, and each read checks that they still have them.
 *	not followed	A link that leads nowhere, to a folder that it is in or
 *		to which WALK_AGAIN others led, or out of the anchors stays a
 *		link.
 *
 * Written by the scan alone; then any thread may read.
 */

/* Words of tree->follow: no link, and those that lead below the source. */
#define SYMLINKS_NONE "none"
#define SYMLINKS_SOURCE "source"

struct link_anchor {
	struct beneath at;
	char *path; /* without links; "" of the root folder */
};

/* A link that is followed: it leads to `name` in a folder below an anchor. */
struct symlink {
	uint32_t node;
	uint32_t folder;
	uint64_t name; /* in `text` */
};

struct link_folder {
	uint32_t anchor;
	uint64_t path; /* in `text`; "": the anchor */
};

struct symlinks {
	struct link_anchor *anchor; /* the first is the source */
	size_t n_anchors;
	bool none;	      /* none is followed */
	struct symlink *link; /* by node, ascending */
	size_t n, allocated;
	struct link_folder *folder;
	size_t n_folders, folders_allocated;
	struct walk_seen seen; /* folders that links lead to */
	char *text;
	size_t text_bytes, text_allocated;
};

/* O_NONBLOCK: a pipe may have replaced the file. */
enum {
	READ_FLAGS = O_RDONLY | O_NONBLOCK,
	FOLDER_FLAGS = O_PATH | O_DIRECTORY
};

/* --- anchors -------------------------------------------------------------- */

/* The path of an open file, which has no links. -ENOENT: it has none. */
static int path_of(int fd, char path[PATH_MAX])
{
	char name[32];
	ssize_t n;

	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	n = readlink(name, path, PATH_MAX);
	if (n <= 0 || n == PATH_MAX || *path != '/')
		return -ENOENT;
	path[n] = 0;
	if (n == 1)
		*path = 0;
	return 0;
}

/* What of `path` comes after `folder`; NULL: it is not below that. */
static const char *below(const char *folder, const char *path)
{
	size_t n = strlen(folder);

	if (strncmp(folder, path, n) || (path[n] && path[n] != '/'))
		return NULL;
	return path[n] ? path + n + 1 : path + n;
}

/* -ENOENT: the path of `fd` is not known. */
static int add_anchor(struct symlinks *l, int fd)
{
	struct link_anchor *more =
		reallocarray(l->anchor, l->n_anchors + 1, sizeof(*more));
	char path[PATH_MAX];
	int r = more ? path_of(fd, path) : -ENOMEM;
	char *copy;

	if (more)
		l->anchor = more;
	if (r < 0)
		return r;
	copy = strdup(path);
	if (!copy)
		return -ENOMEM;
	more = &l->anchor[l->n_anchors++];
	more->path = copy;
	beneath_init(&more->at, fd);
	return 0;
}

/* The folders of "DIR:DIR". */
static int add_folders(struct symlinks *l, const char *list, struct err *err)
{
	_cleanup_free_ char *copy = strdup(list);
	char *save, *dir = copy ? strtok_r(copy, ":", &save) : NULL;

	if (!copy)
		return err_set(err, -ENOMEM, "out of memory");
	for (; dir; dir = strtok_r(NULL, ":", &save)) {
		int fd = open(dir, FOLDER_FLAGS | O_CLOEXEC);
		int r = fd < 0 ? -errno : add_anchor(l, fd);

		if (r < 0 && fd >= 0)
			close(fd);
		if (r < 0)
			return err_set(err, r, "--follow-links %s: %s", dir,
				       strerror(-r));
	}
	return 0;
}

/*
 * `source` is a descriptor of the source, which stays the caller's; the anchors
 * are those of tree->follow. -errno with a text: one cannot be opened. Call
 * symlinks_fini even then. Zeroed is valid, too: without links.
 */
static int symlinks_init(struct symlinks *l, int source,
			 const struct tree *tree, struct err *err)
{
	const char *follow = tree->follow;
	int r;

	*l = (struct symlinks){ 0 };
	if (!follow)
		follow = tree->shared ? SYMLINKS_SOURCE : "/";
	l->none = !strcmp(follow, SYMLINKS_NONE);
	if (l->none)
		return 0;
	r = add_anchor(l, source);
	/* without /proc, links stay links */
	l->none = r == -ENOENT;
	if (r < 0 && r != -ENOENT)
		return err_set(err, r, "out of memory");
	return l->none || !strcmp(follow, SYMLINKS_SOURCE)
		       ? 0
		       : add_folders(l, follow, err);
}

static void symlinks_fini(struct symlinks *l)
{
	for (size_t i = 0; i < l->n_anchors; i++) {
		if (i)
			close(l->anchor[i].at.fd);
		free(l->anchor[i].path);
	}
	free(l->anchor);
	free(l->link);
	free(l->folder);
	free(l->text);
	walk_seen_fini(&l->seen);
	*l = (struct symlinks){ 0 };
}

/* --- links that are known ------------------------------------------------- */

static const struct symlink *find_link(const struct symlinks *l, uint32_t node)
{
	size_t low = 0, high = l->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (l->link[middle].node < node)
			low = middle + 1;
		else
			high = middle;
	}
	return low < l->n && l->link[low].node == node ? &l->link[low] : NULL;
}

/* The link that the path of a node passes last, or that it is; NULL: none. */
static const struct symlink *
symlinks_above(const struct symlinks *l, const struct tree *tree, uint32_t node)
{
	const struct symlink *k = NULL;

	while (l->n && node != TREE_ROOT && !(k = find_link(l, node)))
		node = tree->nodes[node].parent;
	return k;
}

/* Where it leads, below its anchor. */
static int target(const struct symlinks *l, const struct symlink *k,
		  char path[PATH_MAX])
{
	const char *folder = l->text + l->folder[k->folder].path;
	int n = snprintf(path, PATH_MAX, "%s%s%s", folder, *folder ? "/" : "",
			 l->text + k->name);

	return n < PATH_MAX ? n : -ENAMETOOLONG;
}

/* The anchor, and the path below it, of a node whose path passes `link`.
 * -ENAMETOOLONG. */
static int symlinks_path(const struct symlinks *l, const struct tree *tree,
			 const struct symlink *link, uint32_t node,
			 const struct beneath **ret, char path[PATH_MAX])
{
	int n = target(l, link, path);

	*ret = &l->anchor[l->folder[link->folder].anchor].at;
	if (n < 0 || node == link->node)
		return MIN(n, 0);
	if (n + 1 >= PATH_MAX)
		return -ENAMETOOLONG;
	/* paths are compared: "a" and not "./a" below the anchor itself */
	if (!strcmp(path, "."))
		n = 0;
	else
		path[n++] = '/';
	return tree_path_below(tree, link->node, node, path + n,
			       (size_t)(PATH_MAX - n));
}

static int add_text(struct symlinks *l, const char *text, size_t n,
		    uint64_t *ret)
{
	int r = util_reserve(&l->text, &l->text_allocated,
			     l->text_bytes + n + 1, 1);

	if (r < 0)
		return r;
	*ret = l->text_bytes;
	memcpy(l->text + l->text_bytes, text, n);
	l->text[l->text_bytes + n] = 0;
	l->text_bytes += n + 1;
	return 0;
}

/* The links of a folder often lead to one other folder: it is kept once. */
static int use_folder(struct symlinks *l, uint32_t anchor, const char *path,
		      size_t n)
{
	struct link_folder *f = l->n_folders ? &l->folder[l->n_folders - 1]
					     : NULL;
	int r;

	if (f && f->anchor == anchor && !strncmp(l->text + f->path, path, n) &&
	    !l->text[f->path + n])
		return 0;
	r = util_reserve(&l->folder, &l->folders_allocated, l->n_folders + 1,
			 sizeof(*f));
	if (r < 0)
		return r;
	f = &l->folder[l->n_folders];
	f->anchor = anchor;
	r = add_text(l, path, n, &f->path);
	l->n_folders += r == 0;
	return r;
}

/* `path` is below the anchor, "" the anchor itself. */
static int add_link(struct symlinks *l, uint32_t node, uint32_t anchor,
		    const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : *path ? path : ".";
	struct symlink *k;
	int r = use_folder(l, anchor, path, slash ? (size_t)(slash - path) : 0);

	if (r == 0)
		r = util_reserve(&l->link, &l->allocated, l->n + 1, sizeof(*k));
	if (r < 0)
		return r;
	k = &l->link[l->n];
	k->node = node;
	k->folder = (uint32_t)(l->n_folders - 1);
	r = add_text(l, name, strlen(name), &k->name);
	l->n += r == 0;
	return r;
}

/*
 * --- a shared tree --------------------------------------------------------
 *
 * The permissions of a file of these owners that a folder before it leaves:
 * those of a class of users that may search the folder. With other owners the
 * classes are of other users, so all must.
 */
static int limit(int fd, const struct tree_node *known, uid_t uid, gid_t gid,
		 uint32_t *ret)
{
	struct stat st;
	uint32_t mode;

	if (fstat(fd, &st) < 0)
		return -errno;
	mode = acl_limit_file(st.st_mode, fd, NULL);
	/* every path of the mount passes it */
	if (known && st.st_uid == known->uid && st.st_gid == known->gid &&
	    !(known->mode & 0555 & ~mode))
		return 0;
	if (st.st_uid == uid && st.st_gid == gid)
		*ret &= (mode & 0111) * 7;
	else if ((mode & 0111) != 0111)
		*ret = 0;
	return 0;
}

/* Opens one folder after the other. */
static int open_way(const struct symlinks *l, const struct tree *tree,
		    const struct symlink *k, uid_t uid, gid_t gid, int flags,
		    bool nowait, uint32_t *ret)
{
	uint32_t anchor = l->folder[k->folder].anchor;
	const struct tree_node *known = anchor ? NULL : &tree->nodes[TREE_ROOT];
	struct beneath at = l->anchor[anchor].at;
	_cleanup_close_ int fd = beneath_open(&at, ".", FOLDER_FLAGS, nowait);
	char path[PATH_MAX], *rest = path, *name;
	int r = target(l, k, path);

	while (r >= 0 && fd >= 0 && (name = strsep(&rest, "/"))) {
		int next;

		r = limit(fd, known, uid, gid, ret);
		known = NULL;
		at.fd = fd;
		next = beneath_open(&at, name, rest ? FOLDER_FLAGS : flags,
				    nowait);
		close(fd);
		fd = next;
	}
	return r < 0 ? r : TAKE_FD(fd);
}

/*
 * Open what a link leads to, whose owners are expected to be `uid` and `gid`.
 * *ret: which permissions the folders on the way leave. As beneath_open.
 */
static int symlinks_open(const struct symlinks *l, const struct tree *tree,
			 const struct symlink *link, uid_t uid, gid_t gid,
			 int flags, bool nowait, uint32_t *ret)
{
	const struct beneath *at;
	char path[PATH_MAX];
	int r;

	*ret = 0777;
	if (tree->shared)
		return open_way(l, tree, link, uid, gid, flags, nowait, ret);
	r = symlinks_path(l, tree, link, link->node, &at, path);
	return r < 0 ? r : beneath_open(at, path, flags, nowait);
}

/* --- the scan ------------------------------------------------------------- */

/* Is the folder `path` one that `folder` is in, also through links? */
static bool is_loop(const struct symlinks *l, const struct tree *tree,
		    uint32_t folder, const char *path)
{
	for (;;) {
		const struct symlink *k = symlinks_above(l, tree, folder);
		char at[PATH_MAX], full[2 * PATH_MAX];
		const struct link_anchor *a = &l->anchor[0];
		const struct beneath *b;
		int r;

		if (k) {
			a = &l->anchor[l->folder[k->folder].anchor];
			r = symlinks_path(l, tree, k, folder, &b, at);
		} else {
			r = tree_path(tree, folder, at, sizeof(at));
		}
		if (r < 0)
			return true; /* too deep to be listed */
		snprintf(full, sizeof(full), "%s/%s", a->path, at);
		if (!strcmp(at, "."))
			full[strlen(a->path)] = 0;
		if (below(path, full))
			return true;
		if (!k)
			return false;
		folder = tree->nodes[k->node].parent;
	}
}

static int not_followed(struct tree *tree, uint64_t *count, uint32_t node)
{
	if (!tree_links_left(&tree->links))
		tree->links.first = node;
	(*count)++;
	return 0;
}

/* What others see of it. It is opened as a read opens it, so that what is
 * listed can be read; 0: it cannot be. */
static int look_shared(const struct symlinks *l, const struct tree *tree,
		       const struct symlink *k, struct stat *st)
{
	bool folder = S_ISDIR(st->st_mode);
	uint32_t left;
	_cleanup_close_ int fd =
		symlinks_open(l, tree, k, st->st_uid, st->st_gid,
			      folder ? FOLDER_FLAGS : READ_FLAGS, false, &left);
	struct stat now;

	if (fd < 0 || fstat(fd, &now) < 0 || now.st_uid != st->st_uid ||
	    now.st_gid != st->st_gid ||
	    (now.st_mode & S_IFMT) != (st->st_mode & S_IFMT))
		return 0;
	*st = now;
	st->st_mode = acl_limit_file(now.st_mode, fd, NULL) & (S_IFMT | left);
	return 1;
}

/* Below an anchor. */
static int take_link(struct symlinks *l, struct tree *tree, uint32_t node,
		     uint32_t anchor, const char *rest, struct stat *st)
{
	int r = add_link(l, node, anchor, rest);

	if (r < 0)
		return r;
	if (tree->shared && !look_shared(l, tree, &l->link[l->n - 1], st)) {
		l->n--;
		return not_followed(tree, &tree->links.dangling, node);
	}
	tree->links.followed++;
	return 1;
}

/*
 * Follow the link `name` in the folder that is open as `fd`, and that is
 * `folder` in the tree: *ret is what it leads to, with the permissions to be
 * shown, and the link is kept as that of `node`, which comes after those
 * before. Else it is not followed, and is counted in tree->links: 0. 1:
 * followed. -ENOMEM, -EMFILE, -ENFILE.
 */
static int symlinks_follow(struct symlinks *l, struct tree *tree,
			   uint32_t folder, int fd, const char *name,
			   uint32_t node, struct stat *ret)
{
	_cleanup_close_ int to = -1;
	char path[PATH_MAX];
	int often;

	if (l->none)
		return not_followed(tree, &tree->links.outside, node);
	to = openat(fd, name, O_PATH | O_CLOEXEC);
	if (to < 0 && (errno == ENOMEM || errno == EMFILE || errno == ENFILE))
		return -errno;
	if (to < 0 && errno == ELOOP)
		return not_followed(tree, &tree->links.loops, node);
	if (to < 0 || fstat(to, ret) < 0 || path_of(to, path) < 0 ||
	    (!S_ISREG(ret->st_mode) && !S_ISDIR(ret->st_mode)))
		return not_followed(tree, &tree->links.dangling, node);
	if (S_ISDIR(ret->st_mode) && is_loop(l, tree, folder, path))
		return not_followed(tree, &tree->links.loops, node);
	often = S_ISDIR(ret->st_mode)
			? walk_seen_add(&l->seen, ret->st_dev, ret->st_ino)
			: 0;
	if (often)
		return often < 0 ? often
				 : not_followed(tree, &tree->links.loops, node);
	for (uint32_t i = 0; i < l->n_anchors; i++) {
		const char *rest = below(l->anchor[i].path, path);

		if (rest)
			return take_link(l, tree, node, i, rest, ret);
	}
	return not_followed(tree, &tree->links.outside, node);
}

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
static int check_opened(int opened, const struct tree *tree, uint32_t node,
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
	return check_opened(beneath_open(dir, path, flags, nowait), tree, node,
			    0777, ret);
}

static int open_link(const struct dir *d, const struct tree *tree,
		     const struct symlink *link, int flags, bool nowait,
		     struct stat *ret)
{
	const struct tree_node *n = &tree->nodes[link->node];
	uint32_t left;
	int fd = symlinks_open(&d->links, tree, link, n->uid, n->gid, flags,
			       nowait, &left);

	return check_opened(fd, tree, link->node, left, ret);
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

static int dir_read(void *state, const struct tree *tree, uint32_t node,
		    void *buf, size_t n, uint64_t offset, bool nowait)
{
	_cleanup_close_ int fd = -1;
	struct stat st;

	fd = open_node(state, tree, node, READ_FLAGS, nowait, &st);
	return fd < 0 ? fd : source_pread(fd, buf, n, offset, nowait);
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
