/* SPDX-License-Identifier: MIT */
#include "fs/source/group.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/util.h"

/* The tree's files, numbered in the order of their paths. */
struct files {
	const struct tree *tree;
	uint32_t n;
	uint32_t *node;	  /* n */
	uint32_t *number; /* by node */
	uint64_t *bytes;  /* n */
	uint32_t *class;  /* n: the node of the folder in the root */
};

static void files_fini(struct files *f)
{
	free(f->node);
	free(f->number);
	free(f->bytes);
	free(f->class);
}

/* The next node depth first; TREE_ROOT: that was the last. */
static uint32_t next_node(const struct tree *t, uint32_t i)
{
	if (S_ISDIR(t->nodes[i].mode) && t->nodes[i].n_children)
		return t->nodes[i].first_child;
	while (i != TREE_ROOT) {
		const struct tree_node *up = &t->nodes[t->nodes[i].parent];

		if (i + 1 < up->first_child + up->n_children)
			return i + 1;
		i = t->nodes[i].parent;
	}
	return TREE_ROOT;
}

static int files_init(struct files *f, const struct tree *t)
{
	uint32_t class = TREE_ROOT;

	f->tree = t;
	f->node = calloc(t->n_files + 1, sizeof(*f->node));
	f->bytes = calloc(t->n_files + 1, sizeof(*f->bytes));
	f->class = calloc(t->n_files + 1, sizeof(*f->class));
	f->number = calloc(t->n_nodes, sizeof(*f->number));
	if (!f->node || !f->bytes || !f->class || !f->number)
		return -ENOMEM;
	for (uint32_t i = next_node(t, TREE_ROOT); i != TREE_ROOT;
	     i = next_node(t, i)) {
		if (t->nodes[i].parent == TREE_ROOT)
			class = S_ISDIR(t->nodes[i].mode) ? i : TREE_ROOT;
		if (!S_ISREG(t->nodes[i].mode) || t->nodes[i].again)
			continue;
		f->number[i] = f->n;
		f->bytes[f->n] = t->nodes[i].bytes;
		f->class[f->n] = class;
		f->node[f->n++] = i;
	}
	return 0;
}

static uint32_t find_file(const void *ctx, const char *path)
{
	const struct files *f = ctx;
	uint32_t node = tree_find(f->tree, path);

	return node != TREE_NONE && S_ISREG(f->tree->nodes[node].mode)
		       ? f->number[tree_file(f->tree, node)]
		       : UINT32_MAX;
}

/* Print the text of one block of files, the first in `group`; returns the group
 * of the next block. */
static uint32_t print_block(const struct group_map *m, const struct tree *tree,
			    uint32_t block, uint32_t group, FILE *f)
{
	const struct grouping *all = &m->groups;
	uint32_t i = block * GROUP_TEXT_FILES;
	uint32_t end = MIN(i + GROUP_TEXT_FILES, all->n_files);
	char path[PATH_MAX];

	for (; i < end; i++) {
		if (tree_path(tree, all->file[i], path, sizeof(path)) == 0)
			grouping_print_path(f, path, i == all->first[group]);
		if (i + 1 == all->first[group + 1]) {
			grouping_print_end(f);
			group++;
		}
	}
	return group;
}

static int mark_text(struct group_map *m, const struct tree *tree)
{
	_cleanup_free_ char *text = NULL;
	uint32_t group = 0;
	uint64_t at = 0;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	m->n_marks =
		(m->groups.n_files + GROUP_TEXT_FILES - 1) / GROUP_TEXT_FILES;
	m->marks = calloc(m->n_marks + 1, sizeof(*m->marks));
	for (uint32_t i = 0; f && m->marks && i < m->n_marks; i++) {
		m->marks[i] = (struct group_mark){ at, group };
		group = print_block(m, tree, i, group, f);
		at += (uint64_t)ftell(f);
		rewind(f);
	}
	return f && !fclose(f) && m->marks ? 0 : -ENOMEM;
}

/* Takes over `groups`, which hold nodes. */
static int finish_map(const struct tree *t, struct grouping *groups,
		      struct group_map **ret)
{
	struct group_map *m = calloc(1, sizeof(*m));

	if (m)
		m->of_node = malloc(t->n_nodes * sizeof(*m->of_node));
	if (!m || !m->of_node) {
		free(m);
		grouping_free(groups);
		return -ENOMEM;
	}
	m->groups = *groups;
	memset(m->of_node, 0xff, t->n_nodes * sizeof(*m->of_node));
	for (uint32_t g = 0; g < m->groups.n_groups; g++) {
		uint32_t end = m->groups.first[g + 1];
		uint64_t bytes = 0;

		for (uint32_t i = m->groups.first[g]; i < end; i++) {
			uint32_t node = m->groups.file[i];

			/* even if a pack has it in a group */
			if (t->nodes[node].bytes > GROUPING_ALONE ||
			    end - m->groups.first[g] == 1)
				continue;
			m->of_node[node] = g;
			bytes += t->nodes[node].bytes;
		}
		m->largest_bytes = MAX(m->largest_bytes, bytes);
	}
	if (mark_text(m, t) < 0) {
		group_map_free(m);
		return -ENOMEM;
	}
	*ret = m;
	return 0;
}

int group_map_new(const struct tree *tree, uint32_t size, const char *order,
		  uint64_t seed, struct group_map **ret, struct err *err)
{
	_cleanup_(files_fini) struct files f = { 0 };
	struct grouping groups;
	int r = files_init(&f, tree);

	if (r == 0) {
		const struct grouping_files files = { .n = f.n,
						      .bytes = f.bytes,
						      .class = f.class,
						      .find = find_file,
						      .ctx = &f };

		r = grouping_new(&files, size, order, seed, &groups, err);
	}
	if (r < 0)
		return err_set(err, r, "groups: %s", strerror(-r));
	for (uint32_t i = 0; i < groups.n_files; i++)
		groups.file[i] = f.node[groups.file[i]];
	r = finish_map(tree, &groups, ret);
	return r < 0 ? err_set(err, r, "groups: %s", strerror(-r)) : 0;
}

int group_map_of_source(const struct source_ops *source, void *state,
			const struct tree *tree, struct group_map **ret,
			struct err *err)
{
	struct grouping groups;
	int r;

	if (!source->groups)
		return err_set(err, -EINVAL,
			       "--group auto: the source %s has no groups of "
			       "its own; give the number of files, --group N",
			       source->plugin.name);
	r = source->groups(state, tree, &groups);
	if (r == 0)
		r = finish_map(tree, &groups, ret);
	return r < 0 ? err_set(err, r, "groups: %s", strerror(-r)) : 0;
}

void group_map_free(struct group_map *m)
{
	if (!m)
		return;
	grouping_free(&m->groups);
	free(m->of_node);
	free(m->marks);
	free(m);
}

int group_map_read(const struct group_map *m, const struct tree *tree,
		   uint64_t offset, size_t n, char **ret, size_t *ret_n)
{
	_cleanup_free_ char *text = NULL;
	uint32_t low = 0, high = m->n_marks;
	size_t all = 0;
	uint64_t skip;
	FILE *f;

	*ret_n = 0;
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (m->marks[middle].at <= offset)
			low = middle;
		else
			high = middle;
	}
	f = open_memstream(&text, &all);
	if (!f)
		return -ENOMEM;
	skip = offset - m->marks[low].at;
	for (; low < m->n_marks && (uint64_t)ftell(f) < skip + n; low++)
		print_block(m, tree, low, m->marks[low].group, f);
	if (fclose(f))
		return -ENOMEM;
	if (skip < all) {
		*ret_n = MIN(n, all - skip);
		memmove(text, text + skip, *ret_n);
	}
	*ret = TAKE_PTR(text);
	return 0;
}
