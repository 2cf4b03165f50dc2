/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/util.h"
#include "runner/tree/run_edit.h"
#include "runner/tree/run_tree.h"

/* arbitrary: deeper than a reader can follow */
enum { MOST_DEEP = 8 };

/* The files from the first one on; a file that occurs twice is a circle. */
struct chain {
	struct stat files[MOST_DEEP + 1];
	size_t n;
	struct tree_names *names;
};

/* --- join ------------------------------------------------------------- */

/* Instead of a depth: the top level, where each key has its own depth. */
enum { OF_FILE = 100 };

static int join_item(struct conf_node *ours, struct conf_node *theirs,
		     int depth);

/* To what depth the value of a top-level key is joined; -1: it is replaced. */
static int depth_of(const char *key)
{
	static const struct {
		const char *key;
		int depth;
	} joined[] = { { "base", 1 },	  { "mounts", 2 },  { "jobs", 2 },
		       { "axes", 0 },	  { "metrics", 0 }, { "rules", 0 },
		       { "published", 0 } };

	for (size_t i = 0; i < ARRAY_SIZE(joined); i++)
		if (!strcmp(joined[i].key, key))
			return joined[i].depth;
	return -1;
}

/*
 * Add to `own` the items that only `from` has, in front and in its order, and
 * remove what `own` sets to null. Mappings that both have are joined down to
 * `depth`. `from` is left without what has moved.
 */
static int join(struct conf_node *own, struct conf_node *from, int depth)
{
	struct conf_node **items = calloc(own->n + from->n + 1, sizeof(*items));
	size_t n = 0;
	int r = 0;

	if (!items)
		return -ENOMEM;
	for (size_t i = 0; i < from->n; i++) {
		struct conf_node *theirs = from->items[i];
		size_t k = tree_index(own, theirs->key);
		struct conf_node *ours = k < own->n ? own->items[k] : NULL;

		if (ours)
			own->items[k] = NULL;
		else
			from->items[i] = NULL;
		if (ours && r == 0)
			r = join_item(ours, theirs, depth);
		if (ours && tree_is_null(ours))
			conf_node_free(ours);
		else
			items[n++] = ours ? ours : theirs;
	}
	for (size_t k = 0; k < own->n; k++)
		if (own->items[k])
			items[n++] = own->items[k];
	free(own->items);
	own->items = items;
	own->n = n;
	return r;
}

static int join_item(struct conf_node *ours, struct conf_node *theirs,
		     int depth)
{
	int deep = depth == OF_FILE ? depth_of(theirs->key) : depth - 1;

	if (deep < 0 || !strcmp(theirs->key, "dataset") ||
	    ours->kind != CONF_KIND_MAPPING ||
	    theirs->kind != CONF_KIND_MAPPING)
		return 0;
	return join(ours, theirs, deep);
}

/* --- files ------------------------------------------------------------ */

static int prefix_dir(struct conf_node *node, const char *folder)
{
	char *path;

	for (size_t i = 0; i < node->n; i++)
		if (prefix_dir(node->items[i], folder) < 0)
			return -ENOMEM;
	if (node->kind != CONF_KIND_SCALAR || node->value[0] == '/')
		return 0;
	if (asprintf(&path, "%s/%s", folder, node->value) < 0)
		return -ENOMEM;
	free(node->value);
	node->value = path;
	return 0;
}

/* Keys of datasets, and axes of them, also of one mount: "a.dataset.dir". */
static bool names_dir(const char *key, bool in_dataset)
{
	static const char full[] = "dataset.dir";
	size_t n = strlen(key), tail = strlen(full);

	return in_dataset ? !strcmp(key, "dir")
			  : n >= tail && !strcmp(key + n - tail, full) &&
				    (n == tail || key[n - tail - 1] == '.');
}

static int move_dirs(struct conf_node *node, bool in_dataset,
		     const char *folder)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < node->n; i++) {
		struct conf_node *item = node->items[i];
		bool map = node->kind == CONF_KIND_MAPPING;

		if (map && names_dir(item->key, in_dataset))
			r = prefix_dir(item, folder);
		else
			r = move_dirs(item,
				      map && !strcmp(item->key, "dataset"),
				      folder);
	}
	return r;
}

/* Keys whose paths have a rule of their own. */
static bool places_itself(const struct conf_node *item)
{
	return !strcmp(item->key, "dataset") || !strcmp(item->key, "extends");
}

/* A value "./FILE" is seen from the folder of the workload file; `folder` is
 * absolute. */
static int place_values(struct conf_node *node, const char *folder)
{
	char *path;
	int r = 0;

	if (node->kind == CONF_KIND_SCALAR && !strncmp(node->value, "./", 2)) {
		if (asprintf(&path, "%s/%s", folder, node->value + 2) < 0)
			return -ENOMEM;
		free(node->value);
		node->value = path;
	}
	for (size_t i = 0; r == 0 && i < node->n; i++)
		if (node->kind != CONF_KIND_MAPPING ||
		    !places_itself(node->items[i]))
			r = place_values(node->items[i], folder);
	return r;
}

static int place_file(struct conf_node *root, const char *path)
{
	_cleanup_free_ char *real = realpath(path, NULL);

	return real ? place_values(root, dirname(real)) : 0;
}

/* The path of FILE beside `path`, and the folder that it is in, seen from the
 * folder of `path`. */
static int beside(const char *path, const char *file, char **ret_path,
		  char **ret_folder)
{
	_cleanup_free_ char *a = strdup(path), *b = strdup(file);

	if (!a || !b)
		return -ENOMEM;
	*ret_folder = strdup(dirname(b));
	if (file[0] == '/')
		*ret_path = strdup(file);
	else if (!strchr(path, '/'))
		*ret_path = strdup(file);
	else if (asprintf(ret_path, "%s/%s", dirname(a), file) < 0)
		*ret_path = NULL;
	return *ret_path && *ret_folder ? 0 : -ENOMEM;
}

/* A file may be extended only once on the way. */
static int enter(struct chain *c, const struct conf_node *extends,
		 const char *path, const char *target, struct err *err)
{
	struct stat st;

	if (stat(target, &st) < 0)
		return conf_node_error(extends, path, err, "extends %s: %s",
				       target, strerror(errno));
	for (size_t i = 0; i < c->n; i++)
		if (c->files[i].st_dev == st.st_dev &&
		    c->files[i].st_ino == st.st_ino)
			return conf_node_error(extends, path, err,
					       "a circle: %s extends this file",
					       target);
	if (c->n > MOST_DEEP)
		return conf_node_error(extends, path, err,
				       "more than %d files extend each other",
				       MOST_DEEP);
	c->files[c->n++] = st;
	return 0;
}

static int extend(struct conf_node *root, const char *path, struct chain *c,
		  struct err *err);

/* Load what `extends` names into *ret, and what that extends. */
static int load_extended(const struct conf_node *extends, const char *path,
			 struct chain *c, struct conf_node **ret,
			 struct err *err)
{
	_cleanup_free_ char *target = NULL, *folder = NULL;
	const char *name;
	int r;

	if (extends->kind != CONF_KIND_SCALAR)
		return conf_node_error(extends, path, err,
				       "extends is one file");
	r = beside(path, extends->value, &target, &folder);
	if (r == 0)
		r = enter(c, extends, path, target, err);
	if (r == 0)
		r = conf_tree_load(target, ret, err);
	if (r < 0)
		return r;
	if ((*ret)->kind != CONF_KIND_MAPPING)
		return conf_node_error(*ret, target, err, "not a mapping");
	r = place_file(*ret, target);
	if (r == 0)
		r = tree_name(c->names, target, &name);
	if (r == 0)
		r = extend(*ret, name, c, err);
	if (r < 0)
		return r;
	tree_set_file(*ret, name);
	return strcmp(folder, ".") ? move_dirs(*ret, false, folder) : 0;
}

static int extend(struct conf_node *root, const char *path, struct chain *c,
		  struct err *err)
{
	_cleanup_conf_node_ struct conf_node *from = NULL;
	size_t at = tree_index(root, "extends");
	int r;

	if (at == root->n)
		return 0;
	r = load_extended(root->items[at], path, c, &from, err);
	if (r < 0)
		return r;
	tree_remove(root, at);
	return join(root, from, OF_FILE);
}

int tree_extend(struct conf_node *root, const char *path,
		struct tree_names *names, struct err *err)
{
	struct chain c = { .names = names };
	int r;

	if (root->kind != CONF_KIND_MAPPING)
		return 0; /* decoding it says so */
	if (stat(path, &c.files[0]) == 0)
		c.n = 1;
	r = place_file(root, path);
	return r < 0 ? r : extend(root, path, &c, err);
}
