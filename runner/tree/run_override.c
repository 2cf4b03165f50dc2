/* SPDX-License-Identifier: MIT */
/* KEY=VALUE of the command line, put into the tree of the file. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "runner/tree/run_edit.h"
#include "runner/tree/run_tree.h"

/* Where the value goes. */
struct place {
	struct conf_node *map;
	const char *key; /* not terminated */
	size_t n;
};

/* "fs.storage" is short for "base.fs.storage". */
static char *long_key(const char *text, size_t n)
{
	static const char *const of_base[] = { "fs.",	"train.", "exec.",
					       "gpud.", "prepd.", "s3." };
	const char *before = "";

	for (size_t i = 0; i < ARRAY_SIZE(of_base); i++)
		if (!strncmp(text, of_base[i], strlen(of_base[i])))
			before = "base.";
	if (n > 4 && !strncmp(text, "env.", 4)) {
		before = "base.environment.";
		text += 4;
		n -= 4;
	}
	return util_text("%s%.*s", before, (int)n, text);
}

/* "base.fs.storage" as an axis would be called, or NULL. */
static char *axis_key(const char *key)
{
	const char *environment = "base.environment.";
	size_t n = strlen(environment);

	if (!strncmp(key, environment, n))
		return util_text("env.%s", key + n);
	if (!strncmp(key, "dataset.", 8))
		return strdup(key);
	return strncmp(key, "base.", 5) ? NULL : strdup(key + 5);
}

/* A child of a mapping; a NULL `child` is no memory. */
static int add_child(struct conf_node *map, struct conf_node *child)
{
	struct conf_node **items =
		child ? reallocarray(map->items, map->n + 1, sizeof(*items))
		      : NULL;

	if (!items) {
		conf_node_free(child);
		return -ENOMEM;
	}
	map->items = items;
	items[map->n++] = child;
	return 0;
}

static struct conf_node *new_mapping(const struct place *at)
{
	struct conf_node *node = calloc(1, sizeof(*node));

	if (!node)
		return NULL;
	*node = (struct conf_node){ .kind = CONF_KIND_MAPPING,
				    .line = 1,
				    .column = 1,
				    .key = strndup(at->key, at->n),
				    .key_line = 1,
				    .key_column = 1 };
	if (node->key)
		return node;
	free(node);
	return NULL;
}

/* The mapping below at->map that has the next part of the key; made if
 * missing. */
static int descend(struct place *at, const char *text, struct err *err)
{
	size_t i = 0;
	int r;

	while (i < at->map->n &&
	       (strlen(at->map->items[i]->key) != at->n ||
		strncmp(at->map->items[i]->key, at->key, at->n)))
		i++;
	if (i == at->map->n) {
		r = add_child(at->map, new_mapping(at));
		if (r < 0)
			return r;
	}
	at->map = at->map->items[i];
	at->key += at->n + 1;
	if (at->map->kind != CONF_KIND_MAPPING)
		return err_set(err, -EINVAL,
			       "%s:1:1: '%s' is not a mapping: give it as a "
			       "whole",
			       text, at->map->key);
	return 0;
}

/* An axis has dots in its name. */
static int find_place(struct conf_node *root, const char *key, const char *text,
		      struct place *ret, struct err *err)
{
	bool axis = !strncmp(key, "axes.", 5);
	int r = 0;

	*ret = (struct place){ .map = root, .key = key };
	for (;;) {
		bool last = axis && ret->map != root;

		ret->n = last ? strlen(ret->key) : strcspn(ret->key, ".");
		if (!ret->n)
			return err_set(err, -EINVAL, "%s:1:1: not KEY=VALUE",
				       text);
		if (!ret->key[ret->n])
			return 0;
		r = descend(ret, text, err);
		if (r < 0)
			return r;
	}
}

static int parse_value(const char *text, const char *value,
		       struct tree_names *names, struct conf_node **ret,
		       struct err *err)
{
	_cleanup_free_ char *indented = NULL;
	const char *name;
	int r = tree_name(names, text, &name);

	/* so that columns count from the start of the whole text */
	if (r < 0 ||
	    asprintf(&indented, "%*s%s", (int)(value - text), "", value) < 0)
		return -ENOMEM;
	r = conf_tree_parse(indented, strlen(indented), name, ret, err);
	if (r == 0)
		tree_set_file(*ret, name);
	return r;
}

static int put_value(const struct place *at, struct conf_node *value)
{
	size_t i;

	free(value->key);
	value->key = strndup(at->key, at->n);
	value->key_line = value->key_column = 1;
	if (!value->key) {
		conf_node_free(value);
		return -ENOMEM;
	}
	i = tree_index(at->map, value->key);
	if (i == at->map->n && tree_is_null(value)) {
		conf_node_free(value);
		return 0;
	}
	if (i == at->map->n)
		return add_child(at->map, value);
	conf_node_free(at->map->items[i]);
	at->map->items[i] = value;
	if (tree_is_null(value))
		tree_remove(at->map, i);
	return 0;
}

int tree_override(struct conf_node *root, const char *text,
		  struct tree_names *names, char **ret_base, struct err *err)
{
	size_t n = strcspn(text, "=");
	_cleanup_free_ char *key = long_key(text, n);
	struct conf_node *value;
	struct place at;
	int r;

	*ret_base = NULL;
	if (!key)
		return -ENOMEM;
	if (!n || !text[n] || !text[n + 1])
		return err_set(err, -EINVAL, "%s:1:1: not KEY=VALUE", text);
	if (root->kind != CONF_KIND_MAPPING)
		return 0; /* decoding it says so */
	r = find_place(root, key, text, &at, err);
	if (r == 0)
		r = parse_value(text, text + n + 1, names, &value, err);
	if (r == 0)
		r = put_value(&at, value);
	if (r == 0 && !(*ret_base = axis_key(key)) &&
	    (!strncmp(key, "base.", 5) || !strncmp(key, "dataset.", 8)))
		r = -ENOMEM;
	return r;
}
