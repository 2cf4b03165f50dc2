/* SPDX-License-Identifier: MIT */
#include "fs/source/tree.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/util.h"

int tree_init(struct tree *t)
{
	*t = (struct tree){ .n_nodes = 1, .n_allocated = 1024 };
	t->nodes = calloc(t->n_allocated, sizeof(*t->nodes));
	t->names = calloc(1, 1);
	if (!t->nodes || !t->names)
		return -ENOMEM;
	t->names_bytes = t->names_allocated = 1; /* "" at 0: the root's name */
	t->nodes[TREE_ROOT].mode = S_IFDIR | 0555;
	return 0;
}

void tree_fini(struct tree *t)
{
	free(t->nodes);
	free(t->names);
	*t = (struct tree){ 0 };
}

static int by_name(const void *a, const void *b)
{
	const struct tree_child *x = a, *y = b;

	return strcmp(x->name, y->name);
}

/* All fields but the position in the tree. */
static struct tree_node node_of(const struct tree_child *c)
{
	return (struct tree_node){ .bytes = S_ISDIR(c->mode) ? 0 : c->bytes,
				   .mtime_s = c->mtime.tv_sec,
				   .mtime_ns = c->mtime.tv_nsec & 0x3fffffff,
				   .mode = c->mode & (S_IFMT | 0555),
				   .uid = c->uid,
				   .gid = c->gid };
}

void tree_set_root(struct tree *t, const struct tree_child *root)
{
	t->nodes[TREE_ROOT] = node_of(root);
}

bool tree_hides(struct tree *t, uint32_t dir, const char *name)
{
	bool hides = dir == TREE_ROOT && !strcmp(name, TREE_CONTROL_NAME);

	t->n_hidden += hides;
	return hides;
}

static int append(struct tree *t, uint32_t dir, const struct tree_child *c)
{
	struct tree_node *node = &t->nodes[t->n_nodes];
	size_t n = strlen(c->name) + 1;
	int r;

	if (S_ISREG(c->mode) && (c->bytes > TREE_MOST_BYTES ||
				 c->bytes > INT64_MAX - t->file_bytes))
		return -EFBIG;
	r = util_reserve(&t->names, &t->names_allocated, t->names_bytes + n, 1);
	if (r < 0)
		return r;
	memcpy(t->names + t->names_bytes, c->name, n);
	*node = node_of(c);
	node->name = t->names_bytes;
	node->parent = dir;
	t->n_nodes++;
	t->names_bytes += n;
	if (S_ISREG(c->mode)) {
		t->n_files++;
		t->file_bytes += c->bytes;
	}
	return 0;
}

int tree_add_children(struct tree *t, uint32_t dir, struct tree_child *children,
		      size_t n)
{
	size_t allocated = t->n_allocated;
	int r;

	if (n >= TREE_NONE - t->n_nodes)
		return -EOVERFLOW;
	r = util_reserve(&t->nodes, &allocated, t->n_nodes + n,
			 sizeof(*t->nodes));
	if (r < 0)
		return r;
	t->n_allocated = (uint32_t)MIN(allocated, TREE_NONE);
	if (n)
		qsort(children, n, sizeof(*children), by_name);
	t->nodes[dir].first_child = t->n_nodes;
	for (size_t i = 0; i < n; i++) {
		if (i && !strcmp(children[i - 1].name, children[i].name))
			return -EEXIST;
		r = append(t, dir, &children[i]);
		if (r < 0)
			return r;
		t->nodes[dir].n_children++;
	}
	return 0;
}

const char *tree_name(const struct tree *t, uint32_t node)
{
	return t->names + t->nodes[node].name;
}

uint32_t tree_lookup(const struct tree *t, uint32_t dir, const char *name)
{
	const struct tree_node *d = &t->nodes[dir];
	uint32_t low = d->first_child, high = low + d->n_children;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		int order = strcmp(name, tree_name(t, middle));

		if (order == 0)
			return middle;
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return TREE_NONE;
}

uint32_t tree_find(const struct tree *t, const char *path)
{
	uint32_t node = TREE_ROOT;
	char name[NAME_MAX + 1];

	for (;;) {
		size_t n = strcspn(path, "/");

		if (n > NAME_MAX || !S_ISDIR(t->nodes[node].mode))
			return TREE_NONE;
		memcpy(name, path, n);
		name[n] = 0;
		node = tree_lookup(t, node, name);
		if (node == TREE_NONE || !path[n])
			return node;
		path += n + 1;
	}
}

int tree_path_below(const struct tree *t, uint32_t top, uint32_t node,
		    char *buf, size_t n)
{
	size_t at = n - 1;

	if (node == top) {
		memcpy(buf, ".", 2);
		return 0;
	}
	/* built backwards from the buffer's end, then moved to its start */
	buf[at] = 0;
	for (; node != top; node = t->nodes[node].parent) {
		const char *name = tree_name(t, node);
		size_t len = strlen(name);

		if (len + 1 > at)
			return -ENAMETOOLONG;
		if (buf[at])
			buf[--at] = '/';
		at -= len;
		memcpy(buf + at, name, len);
	}
	memmove(buf, buf + at, n - at);
	return 0;
}

int tree_path(const struct tree *t, uint32_t node, char *buf, size_t n)
{
	return tree_path_below(t, TREE_ROOT, node, buf, n);
}

uint32_t tree_label(const struct tree *t, uint32_t file)
{
	if (file >= t->n_nodes || t->nodes[file].parent == TREE_ROOT)
		return 0; /* also of the root itself */
	while (t->nodes[file].parent != TREE_ROOT)
		file = t->nodes[file].parent;
	return 1 + file - t->nodes[TREE_ROOT].first_child;
}

uint32_t tree_labels(const struct tree *t)
{
	const struct tree_node *root = &t->nodes[TREE_ROOT];
	uint32_t n = t->n_nodes ? root->n_children : 0;

	while (n && !S_ISDIR(t->nodes[root->first_child + n - 1].mode))
		n--;
	return 1 + n;
}

uint32_t tree_label_of(const void *tree, uint64_t key)
{
	return tree_label(tree, (uint32_t)(key >> 32));
}

uint64_t *tree_sizes(const struct tree *t)
{
	uint64_t *sizes = malloc((t->n_files + 1) * sizeof(*sizes));
	size_t n = 0;

	for (uint32_t i = 0; sizes && i < t->n_nodes; i++)
		if (S_ISREG(t->nodes[i].mode) && !t->nodes[i].again)
			sizes[n++] = t->nodes[i].bytes;
	if (sizes)
		qsort(sizes, n, sizeof(*sizes), util_compare_u64);
	return sizes;
}

/*
 * --- names of a file ------------------------------------------------------
 *
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

struct sorter {
	const struct tree *tree;
	const struct tree_id *id;
};

static int compare_u64(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

/* By file, then by permissions, then by number. */
static int by_file(const void *a, const void *b, void *ctx)
{
	const struct sorter *s = ctx;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	int c = compare_u64(s->id[x].dev, s->id[y].dev);

	if (c == 0)
		c = compare_u64(s->id[x].ino, s->id[y].ino);
	if (c == 0)
		c = compare_u64(s->tree->nodes[x].mode, s->tree->nodes[y].mode);
	return c ? c : compare_u64(x, y);
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
