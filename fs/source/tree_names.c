/* SPDX-License-Identifier: MIT */
/*
 * Files that have several names are found by sorting all files by identity: a
 * source calls this only if it has seen a second link, or followed one.
 *
 * A shared tree needs more than that. A name in a folder that is closed to some
 * and one in an open folder may be links of one file when they are scanned, and
 * of two files later, the one in the closed folder secret. All reads would open
 * the file by one of the names. So in such a tree the name that is opened must
 * be in folders that are open to all, as dir_open checks at every open, or in
 * the same folder as the other.
 */
#include "fs/source/tree.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

struct sorter {
	const struct tree *tree;
	const struct tree_id *id;
};

static int compare(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

/* By file, then by permissions, then by number. */
static int by_file(const void *a, const void *b, void *ctx)
{
	const struct sorter *s = ctx;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	int c = compare(s->id[x].dev, s->id[y].dev);

	if (c == 0)
		c = compare(s->id[x].ino, s->id[y].ino);
	if (c == 0)
		c = compare(s->tree->nodes[x].mode, s->tree->nodes[y].mode);
	return c ? c : compare(x, y);
}

static bool same_file(const struct sorter *s, uint32_t x, uint32_t y)
{
	return s->id[x].dev == s->id[y].dev && s->id[x].ino == s->id[y].ino &&
	       s->tree->nodes[x].mode == s->tree->nodes[y].mode &&
	       s->tree->nodes[x].bytes == s->tree->nodes[y].bytes;
}

/* May everyone search all folders that the name is in? */
static bool in_open_folders(const struct tree *t, uint32_t node)
{
	while (node != TREE_ROOT) {
		node = t->nodes[node].parent;
		if ((t->nodes[node].mode & 0111) != 0111)
			return false;
	}
	return true;
}

static bool may_join(const struct tree *t, uint32_t first, uint32_t node)
{
	return !t->shared || t->nodes[first].parent == t->nodes[node].parent ||
	       in_open_folders(t, first);
}

static void join(struct tree *t, uint32_t first, uint32_t node)
{
	t->nodes[node].again = 1;
	t->nodes[node].names_of = first;
	t->nodes[first].names_of++;
	t->n_again++;
	t->n_files--;
	t->file_bytes -= t->nodes[node].bytes;
}

int tree_join_names(struct tree *t, const struct tree_id *id)
{
	struct sorter s = { .tree = t, .id = id };
	uint32_t *v = malloc((t->n_files + 1) * sizeof(*v));
	uint32_t n = 0, first = 0;

	if (!v)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->n_nodes; i++)
		if (S_ISREG(t->nodes[i].mode))
			v[n++] = i;
	qsort_r(v, n, sizeof(*v), by_file, &s);
	for (uint32_t i = 1; i < n; i++)
		if (same_file(&s, v[first], v[i]) &&
		    may_join(t, v[first], v[i]))
			join(t, v[first], v[i]);
		else
			first = i;
	free(v);
	return 0;
}
