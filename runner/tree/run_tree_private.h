/* SPDX-License-Identifier: MIT */
/* Edits of a tree, shared by run_extends.c and run_override.c. */
#ifndef GPEMU_RUNNER_TREE_RUN_TREE_PRIVATE_H
#define GPEMU_RUNNER_TREE_RUN_TREE_PRIVATE_H

#include "runner/tree/run_tree.h"

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
