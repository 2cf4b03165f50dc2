/* SPDX-License-Identifier: MIT */
/*
 * Sorted by path, the files of a folder are neighbours: a directory of the
 * tree is a range of the sorted files and the length of the path up to it.
 * The tree is built breadth first from these ranges.
 */
#include "fs/source/tree_paths.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/util.h"

/* A directory that is still to be filled, or a file. */
struct range {
	uint32_t from, to; /* of the sorted files */
	uint32_t prefix;   /* length of their paths above it */
};

struct scan {
	const struct tree_paths *p;
	struct tree *tree;
	struct range *ranges; /* by node */
	struct tree_child *children;
	struct range *found; /* of the children */
	size_t n;
};

static const char *path_of(const struct scan *s, uint32_t i,
			   struct tree_child *c)
{
	const char *path;

	s->p->file(s->p->ctx, i, &path, c);
	return path;
}

/* Add a child of a directory: all files from `i` with the same next component;
 * returns where the next child begins, 0 without memory. */
static uint32_t next_child(struct scan *s, uint32_t node, uint32_t i)
{
	const struct range *dir = &s->ranges[node];
	struct tree_child *child = &s->children[s->n], file = s->p->folder, any;
	const char *name = path_of(s, i, &file) + dir->prefix;
	size_t len = strcspn(name, "/");
	bool is_file = !name[len];
	uint32_t end = i + 1;

	while (!is_file && end < dir->to &&
	       !strncmp(path_of(s, end, &any) + dir->prefix, name, len + 1))
		end++;
	*child = is_file ? file : s->p->folder;
	child->name = strndup(name, len);
	if (child->name && tree_hides(s->tree, node, child->name)) {
		free(child->name);
		return end;
	}
	s->found[s->n] = (struct range){
		.from = i,
		.to = end,
		.prefix = dir->prefix + (uint32_t)len + 1,
	};
	return s->children[s->n++].name ? end : 0;
}

/* Gives directory `node` its children and notes their ranges. */
static int fill_dir(struct scan *s, uint32_t node)
{
	const struct range dir = s->ranges[node];
	uint32_t i = dir.from, first = s->tree->n_nodes;
	struct range *more;
	int r = 0;

	s->n = 0;
	while (r == 0 && i < dir.to) {
		i = next_child(s, node, i);
		r = i ? 0 : -ENOMEM;
	}
	if (r == 0)
		r = tree_add_children(s->tree, node, s->children, s->n);
	for (size_t k = 0; k < s->n; k++)
		free(s->children[k].name);
	if (r < 0)
		return r;
	more = reallocarray(s->ranges, s->tree->n_nodes, sizeof(*more));
	if (!more)
		return -ENOMEM;
	s->ranges = more;
	/* already sorted, so the tree kept their order */
	memcpy(more + first, s->found, s->n * sizeof(*more));
	return 0;
}

static int fill_nodes(struct scan *s, uint32_t **ret_file)
{
	struct tree *t = s->tree;
	uint32_t n = s->p->n, *file;
	int r = 0;

	s->ranges = calloc(1, sizeof(*s->ranges));
	s->children = calloc((size_t)n + 1, sizeof(*s->children));
	s->found = calloc((size_t)n + 1, sizeof(*s->found));
	if (!s->ranges || !s->children || !s->found)
		return -ENOMEM;
	s->ranges[TREE_ROOT].to = n;
	tree_set_root(t, &s->p->folder);
	for (uint32_t i = 0; r == 0 && i < t->n_nodes; i++)
		if (S_ISDIR(t->nodes[i].mode))
			r = fill_dir(s, i);
	if (r < 0)
		return r;
	*ret_file = file = calloc(t->n_nodes, sizeof(*file));
	for (uint32_t i = 0; file && i < t->n_nodes; i++)
		if (S_ISREG(t->nodes[i].mode))
			file[i] = s->ranges[i].from;
	return file ? 0 : -ENOMEM;
}

int tree_of_paths(struct tree *t, const struct tree_paths *p,
		  uint32_t **ret_file)
{
	struct scan s = { .p = p, .tree = t };
	int r = fill_nodes(&s, ret_file);

	free(s.ranges);
	free(s.children);
	free(s.found);
	return r;
}
