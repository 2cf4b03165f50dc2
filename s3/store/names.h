/* SPDX-License-Identifier: MIT */
/*
 * The keys of the bucket: the paths of all regular files, in the order of S3,
 * which is that of their bytes. Constant; any thread. A listing merges them
 * with those of the objects that clients have put.
 */
#ifndef GPEMU_S3_STORE_NAMES_H
#define GPEMU_S3_STORE_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "fs/source/tree.h"
#include "s3/store/index.h"

/* Longer paths are no keys. Source: Amazon S3 user guide, "Naming objects". */
enum { NAMES_MOST = 1024 };

struct names {
	const struct tree *tree; /* borrowed */
	uint32_t *nodes;	 /* in the order of their keys */
	size_t n;
	size_t n_long; /* files left out */
};

/* -ENOMEM. */
int names_init(struct names *names, const struct tree *tree);
void names_fini(struct names *names);
/* The node of a key; TREE_NONE. */
uint32_t names_find(const struct names *names, const char *key);

struct names_query {
	const char *prefix;    /* "": all */
	const char *delimiter; /* "": none */
	const char *after;     /* keys and common prefixes beyond this; "" */
	size_t most;
	/* Called for each; `node` TREE_NONE: an object that was put, or (NULL)
	 * a common prefix. */
	void (*found)(void *ctx, const char *key, uint32_t node,
		      const struct stored *o);
	void *ctx;
};
/* Returns whether there are more; `last`: the last that was found. No key is
 * in both. */
bool names_list(const struct names *names, const struct index *put,
		const struct names_query *q, char last[NAMES_MOST + 1]);

#endif
