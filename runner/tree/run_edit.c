/* SPDX-License-Identifier: MIT */
#include "runner/tree/run_edit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"

void tree_names_free(struct tree_names *names)
{
	for (size_t i = 0; i < names->n; i++)
		free(names->v[i]);
	free(names->v);
	*names = (struct tree_names){ 0 };
}

int tree_name(struct tree_names *names, const char *name, const char **ret)
{
	char *copy = strdup(name);
	char **v = reallocarray(names->v, names->n + 1, sizeof(*v));

	if (v)
		names->v = v;
	if (!v || !copy) {
		free(copy);
		return -ENOMEM;
	}
	*ret = v[names->n++] = copy;
	return 0;
}

size_t tree_index(const struct conf_node *map, const char *key)
{
	size_t i = 0;

	/* an item that was moved away is NULL */
	while (i < map->n &&
	       (!map->items[i] || strcmp(map->items[i]->key, key)))
		i++;
	return i;
}

bool tree_is_null(const struct conf_node *node)
{
	return node->kind == CONF_KIND_SCALAR && !node->quoted &&
	       (!strcmp(node->value, "~") || !strcmp(node->value, "null"));
}

void tree_remove(struct conf_node *map, size_t i)
{
	conf_node_free(map->items[i]);
	map->n--;
	memmove(&map->items[i], &map->items[i + 1],
		(map->n - i) * sizeof(*map->items));
}

void tree_set_file(struct conf_node *node, const char *file)
{
	if (!node->file)
		node->file = file;
	for (size_t i = 0; i < node->n; i++)
		tree_set_file(node->items[i], file);
}
