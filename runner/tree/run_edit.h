/* SPDX-License-Identifier: MIT */
/* Edits of a tree, for run_extends.c and run_override.c. */
#ifndef GPEMU_RUNNER_TREE_RUN_EDIT_H
#define GPEMU_RUNNER_TREE_RUN_EDIT_H

#include "common/conf/conf_tree.h"

/* Names of files and overrides, which the nodes of a tree borrow. */
struct tree_names {
	char **v;
	size_t n;
};

void tree_names_free(struct tree_names *names);

/* Keep a copy of a name; -ENOMEM. */
int tree_name(struct tree_names *names, const char *name, const char **ret);
/* The index of a key of a mapping; its number of items: it has none. */
size_t tree_index(const struct conf_node *map, const char *key);
/* ~ or null, not quoted. */
bool tree_is_null(const struct conf_node *node);
/* Free an item of a mapping, and close the gap. */
void tree_remove(struct conf_node *map, size_t i);
/* Let all nodes that name no file be of `file`. */
void tree_set_file(struct conf_node *node, const char *file);

#endif
