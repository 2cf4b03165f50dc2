/* SPDX-License-Identifier: MIT */
/*
 * A YAML document as a tree with the position of each node.
 *
 * libyaml parses it; only the subset needed for configurations is accepted: one
 * document, scalar keys, no duplicate keys, no anchors, no tags, at most 32
 * levels deep.
 */
#ifndef GPEMU_COMMON_CONF_CONF_TREE_H
#define GPEMU_COMMON_CONF_CONF_TREE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"

enum conf_kind { CONF_KIND_SCALAR, CONF_KIND_SEQUENCE, CONF_KIND_MAPPING };

struct conf_node {
	enum conf_kind kind;
	const char *file; /* borrowed: of a part of another document; or NULL */
	unsigned line, column; /* from 1 */
	char *key;	       /* when the parent is a mapping */
	unsigned key_line, key_column;
	char *value;		  /* of a scalar */
	bool quoted;		  /* then "null" and "~" are text */
	struct conf_node **items; /* of a sequence or mapping */
	size_t n;
};

/*
 * Parse `n` bytes; `name` (a path) starts error texts: "name:line:column: ".
 * An empty document is an empty mapping. -EINVAL or -ENOMEM. Free with
 * conf_node_free.
 */
int conf_tree_parse(const char *bytes, size_t n, const char *name,
		    struct conf_node **ret, struct err *err);
/* Read a whole file, then parse. */
int conf_tree_load(const char *path, struct conf_node **ret, struct err *err);
void conf_node_free(struct conf_node *node);

/* The value under `key` of a mapping, or NULL. */
const struct conf_node *conf_node_get(const struct conf_node *map,
				      const char *key);
/* A copy, with what is below; NULL: no memory. */
struct conf_node *conf_node_copy(const struct conf_node *node);
/* The name of the document that the node is from: its `file`, else `name`. */
const char *conf_node_name(const struct conf_node *node, const char *name);
/* err_set(-EINVAL) prefixed with "name:line:column: " of the node. */
int conf_node_error(const struct conf_node *node, const char *name,
		    struct err *err, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

static inline void conf_node_freep(struct conf_node **node)
{
	conf_node_free(*node);
}
#define _cleanup_conf_node_ __attribute__((cleanup(conf_node_freep)))

#endif
