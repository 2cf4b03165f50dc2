/* SPDX-License-Identifier: MIT */
/* Builds a tree from the paths of its files. */
#ifndef GPEMU_FS_SOURCE_TREE_PATHS_H
#define GPEMU_FS_SOURCE_TREE_PATHS_H

#include "fs/source/tree.h"

struct tree_paths {
	uint32_t n; /* files */
	/* of the root and all folders, and of the files but for what `file`
	 * sets */
	struct tree_child folder;
	/* File `i`, in the order of grouping_compare: its path "a/b/c",
	 * and bytes, mtime and mode. No path is that of another's folder, no
	 * two are equal, and no component is empty. */
	void (*file)(const void *ctx, uint32_t i, const char **ret_path,
		     struct tree_child *c);
	const void *ctx;
};

/*
 * Fill the tree, which is empty before. *ret_file: of each node that is a file
 * its number, malloc'ed. -ENOMEM, and as tree_add_children.
 */
int tree_of_paths(struct tree *t, const struct tree_paths *p,
		  uint32_t **ret_file);

#endif
