/* SPDX-License-Identifier: MIT */
/*
 * The tree sorts the children of a folder by name. In the order of keys the
 * name of a folder ends in a slash, which puts "a.txt" before "a/b". So each
 * folder is sorted again, and the whole is walked once.
 */
#include "s3/store/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/util.h"

/* The character behind the name as keys have it. */
static unsigned char end_of(const struct tree *t, uint32_t node)
{
	return S_ISDIR(t->nodes[node].mode) ? '/' : 0;
}

static int compare_names(const void *a, const void *b, void *ctx)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	const struct tree *t = ctx;
	const char *s = tree_name(t, x), *u = tree_name(t, y);
	unsigned char c, d;

	while (*s && *s == *u) {
		s++;
		u++;
	}
	c = *s ? (unsigned char)*s : end_of(t, x);
	d = *u ? (unsigned char)*u : end_of(t, y);
	return c - d;
}

/* `n` bytes of the key come before the names in `dir`. */
static int walk(struct names *names, uint32_t dir, size_t n)
{
	const struct tree_node *d = &names->tree->nodes[dir];
	_cleanup_free_ uint32_t *v = calloc(d->n_children + 1, sizeof(*v));
	int r = v ? 0 : -ENOMEM;

	for (uint32_t i = 0; v && i < d->n_children; i++)
		v[i] = d->first_child + i;
	if (v)
		qsort_r(v, d->n_children, sizeof(*v), compare_names,
			(void *)names->tree);
	for (uint32_t i = 0; r == 0 && i < d->n_children; i++) {
		uint32_t mode = names->tree->nodes[v[i]].mode;
		size_t length = n + strlen(tree_name(names->tree, v[i]));

		if (!S_ISDIR(mode) && !S_ISREG(mode))
			continue;
		if (length > NAMES_MOST)
			names->n_long++;
		else if (S_ISDIR(mode))
			r = walk(names, v[i], length + 1);
		else
			names->nodes[names->n++] = v[i];
	}
	return r;
}

int names_init(struct names *names, const struct tree *tree)
{
	*names = (struct names){ .tree = tree };
	names->nodes = calloc(tree->n_nodes, sizeof(*names->nodes));
	return names->nodes ? walk(names, TREE_ROOT, 0) : -ENOMEM;
}

void names_fini(struct names *names)
{
	free(names->nodes);
	*names = (struct names){ 0 };
}

static void key_of(const struct names *names, size_t i,
		   char ret[NAMES_MOST + 1])
{
	if (tree_path(names->tree, names->nodes[i], ret, NAMES_MOST + 1) < 0)
		ret[0] = 0; /* walk() left those out */
}

/* The first key that is `text` or beyond; with `beyond`, that is beyond it and,
 * of its first `n` bytes, beyond all that begin with them. */
static size_t bound(const struct names *names, const char *text, size_t n,
		    bool beyond)
{
	size_t low = 0, high = names->n;
	char key[NAMES_MOST + 1];

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int c;

		key_of(names, middle, key);
		c = strncmp(key, text, n);
		if (c < 0 || (beyond && c == 0))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

uint32_t names_find(const struct names *names, const char *key)
{
	size_t i = bound(names, key, SIZE_MAX, false);
	char found[NAMES_MOST + 1];

	if (i == names->n)
		return TREE_NONE;
	key_of(names, i, found);
	return strcmp(found, key) ? TREE_NONE : names->nodes[i];
}

/* The length of the common prefix that `key` is in; 0: of none. */
static size_t common(const char *key, const struct names_query *q)
{
	const char *at = *q->delimiter
				 ? strstr(key + strlen(q->prefix), q->delimiter)
				 : NULL;

	return at ? (size_t)(at - key) + strlen(q->delimiter) : 0;
}

/* Where a listing is in both. */
struct cursor {
	const struct names *names;
	const struct index *put;
	size_t i, k;
	char key[NAMES_MOST + 1]; /* the next of both */
	uint32_t node;
	const struct stored *stored;
};

static void move_to(struct cursor *c, const char *text, size_t n, bool beyond)
{
	c->i = MAX(c->i, bound(c->names, text, n, beyond));
	c->k = MAX(c->k, index_bound(c->put, text, n, beyond));
}

/* The next key; false: there is none. */
static bool look(struct cursor *c)
{
	int order = 1;

	c->stored = c->k < c->put->n ? c->put->v[c->k] : NULL;
	c->node = TREE_NONE;
	if (c->i < c->names->n) {
		key_of(c->names, c->i, c->key);
		order = c->stored ? strcmp(c->key, c->stored->key) : -1;
	}
	if (order <= 0) {
		c->node = c->names->nodes[c->i];
		c->stored = NULL;
	} else if (c->stored) {
		strcpy(c->key, c->stored->key);
	}
	return c->stored || c->node != TREE_NONE;
}

bool names_list(const struct names *names, const struct index *put,
		const struct names_query *q, char last[NAMES_MOST + 1])
{
	struct cursor c = { .names = names, .put = put };
	size_t n_prefix = strlen(q->prefix), n, found = 0;

	last[0] = 0;
	move_to(&c, q->prefix, SIZE_MAX, false);
	if (*q->after)
		move_to(&c, q->after, SIZE_MAX, true);
	while (q->most && look(&c) && !strncmp(c.key, q->prefix, n_prefix)) {
		n = common(c.key, q);
		if (c.stored)
			c.k++;
		else
			c.i++;
		if (n) {
			move_to(&c, c.key, n, true);
			c.key[n] = 0;
			c.node = TREE_NONE;
			c.stored = NULL;
			if (strcmp(c.key, q->after) <= 0)
				continue;
		}
		if (found == q->most)
			return true;
		found++;
		strcpy(last, c.key);
		q->found(q->ctx, c.key, c.node, c.stored);
	}
	return false;
}
