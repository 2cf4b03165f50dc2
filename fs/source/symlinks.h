/* SPDX-License-Identifier: MIT */
/*
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
#ifndef GPEMU_FS_SOURCE_SYMLINKS_H
#define GPEMU_FS_SOURCE_SYMLINKS_H

#include <limits.h>
#include <sys/stat.h>

#include "common/err.h"
#include "common/system/walk.h"
#include "fs/source/beneath.h"
#include "fs/source/tree.h"

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

/*
 * `source` is a descriptor of the source, which stays the caller's; the anchors
 * are those of tree->follow. -errno with a text: one cannot be opened. Call
 * symlinks_fini even then. Zeroed is valid, too: without links.
 */
int symlinks_init(struct symlinks *l, int source, const struct tree *tree,
		  struct err *err);
void symlinks_fini(struct symlinks *l);

/*
 * Follow the link `name` in the folder that is open as `fd`, and that is
 * `folder` in the tree: *ret is what it leads to, with the permissions to be
 * shown, and the link is kept as that of `node`, which comes after those
 * before. Else it is not followed, and is counted in tree->links: 0. 1:
 * followed. -ENOMEM, -EMFILE, -ENFILE.
 */
int symlinks_follow(struct symlinks *l, struct tree *tree, uint32_t folder,
		    int fd, const char *name, uint32_t node, struct stat *ret);

/* The link that the path of a node passes last, or that it is; NULL: none. */
const struct symlink *symlinks_above(const struct symlinks *l,
				     const struct tree *tree, uint32_t node);

/*
 * Open what a link leads to, whose owners are expected to be `uid` and `gid`.
 * *ret: which permissions the folders on the way leave. As beneath_open.
 */
int symlinks_open(const struct symlinks *l, const struct tree *tree,
		  const struct symlink *link, uid_t uid, gid_t gid, int flags,
		  bool nowait, uint32_t *ret);

/* The anchor, and the path below it, of a node whose path passes `link`.
 * -ENAMETOOLONG. */
int symlinks_path(const struct symlinks *l, const struct tree *tree,
		  const struct symlink *link, uint32_t node,
		  const struct beneath **ret, char path[PATH_MAX]);

#endif
