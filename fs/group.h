/* SPDX-License-Identifier: MIT */
/*
 * Which files of the tree one read of the backend brings together. Made once,
 * never changed: any thread may look.
 */
#ifndef GPEMU_FS_GROUP_H
#define GPEMU_FS_GROUP_H

#include <stdio.h>

#include "common/grouping.h"
#include "fs/source.h"

#define GROUP_NONE UINT32_MAX

struct group_map {
	struct grouping groups; /* of nodes */
	/* by node: its group; GROUP_NONE where it is read alone (a large
	 * file, a group of one) */
	uint32_t *of_node;
	uint64_t largest_bytes; /* of a group */
};

/*
 * By `size` files in the order `order` (common/grouping.h). -EINVAL, -ENOMEM
 * and what reading a list may give, with a text.
 */
int group_map_new(const struct tree *tree, uint32_t size, const char *order,
		  uint64_t seed, struct group_map **ret, struct err *err);
/* The groups that the source has. -EINVAL: it has none; -ENOMEM. */
int group_map_of_source(const struct source_ops *source, void *state,
			const struct tree *tree, struct group_map **ret,
			struct err *err);
void group_map_free(struct group_map *m);

/* All groups, a JSON array of paths a line. */
void group_map_print(const struct group_map *m, const struct tree *tree,
		     FILE *f);

#endif
