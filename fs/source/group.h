/* SPDX-License-Identifier: MIT */
/*
 * Which files of the tree the device reads as one unit. Made once, never
 * changed: any thread may read it.
 */
#ifndef GPEMU_FS_SOURCE_GROUP_H
#define GPEMU_FS_SOURCE_GROUP_H

#include <stdio.h>

#include "common/pack/grouping.h"
#include "fs/source/source.h"

#define GROUP_NONE UINT32_MAX

struct group_map {
	struct grouping groups; /* of nodes */
	/* by node: its group; GROUP_NONE: it is read alone (a large file,
	 * a group of one) */
	uint32_t *of_node;
	uint64_t largest_bytes; /* of a group */
	/* for each block of GROUP_TEXT_FILES files: the offset and the group
	 * at which its text begins */
	struct group_mark {
		uint64_t at;
		uint32_t group;
	} * marks;
	uint32_t n_marks;
};

/* arbitrary: at most this many are printed in vain before a piece of text */
enum { GROUP_TEXT_FILES = 256 };

/*
 * Groups of `size` files in the order `order` (common/pack/grouping.h).
 * -EINVAL, -ENOMEM and errors of reading a list, with a text.
 */
int group_map_new(const struct tree *tree, uint32_t size, const char *order,
		  uint64_t seed, struct group_map **ret, struct err *err);
/* The groups that the source has. -EINVAL: it has none; -ENOMEM. */
int group_map_of_source(const struct source_ops *source, void *state,
			const struct tree *tree, struct group_map **ret,
			struct err *err);
void group_map_free(struct group_map *m);
/* Is this file read together with others? `m` NULL: no. */
static inline bool group_map_has(const struct group_map *m, uint32_t node)
{
	return m && m->of_node[node] != GROUP_NONE;
}
/* The first file of this file's group; without a group, itself. */
static inline uint32_t group_map_lead(const struct group_map *m, uint32_t node)
{
	return group_map_has(m, node)
		       ? m->groups.file[m->groups.first[m->of_node[node]]]
		       : node;
}

/* Up to `n` bytes at `offset` of the text of all groups, one JSON array of
 * paths a line: malloc'ed; *ret_n: their number, 0 at the end. The text is made
 * as it is read, so that no reader needs memory for all of it. -ENOMEM. */
int group_map_read(const struct group_map *m, const struct tree *tree,
		   uint64_t offset, size_t n, char **ret, size_t *ret_n);

#endif
