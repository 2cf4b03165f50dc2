/* SPDX-License-Identifier: MIT */
#include "fs/source/symlinks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/util.h"
#include "fs/source/acl.h"

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

int symlinks_init(struct symlinks *l, int source, const struct tree *tree,
		  struct err *err)
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

void symlinks_fini(struct symlinks *l)
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

static const struct symlink *find(const struct symlinks *l, uint32_t node)
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

const struct symlink *symlinks_above(const struct symlinks *l,
				     const struct tree *tree, uint32_t node)
{
	const struct symlink *k = NULL;

	while (l->n && node != TREE_ROOT && !(k = find(l, node)))
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

int symlinks_path(const struct symlinks *l, const struct tree *tree,
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

/* --- a shared tree -------------------------------------------------------- */

/*
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

int symlinks_open(const struct symlinks *l, const struct tree *tree,
		  const struct symlink *link, uid_t uid, gid_t gid, int flags,
		  bool nowait, uint32_t *ret)
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
static int take(struct symlinks *l, struct tree *tree, uint32_t node,
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

int symlinks_follow(struct symlinks *l, struct tree *tree, uint32_t folder,
		    int fd, const char *name, uint32_t node, struct stat *ret)
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
			return take(l, tree, node, i, rest, ret);
	}
	return not_followed(tree, &tree->links.outside, node);
}
