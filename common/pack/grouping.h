/* SPDX-License-Identifier: MIT */
/*
 * Groups of files that are read as a unit: of a pack, and of a mount with
 * --group. Every file is in exactly one group; the last one may be smaller.
 * Files count from 0 in the order of their paths (grouping_compare).
 *
 * Orders:
 *	sequential  as the paths are sorted: a group is mostly of one class
 *	random      one shuffle of all files
 *	diffclass   the next file of the next class, round and round
 *	else        a file to read them from: a path a line, cut every N files;
 *	            or a JSON array of paths a line, which is a group (what
 *	            MOUNTPOINT/.gpemu/groups holds). Files that it does not
 *	            name come last, in the order of their paths.
 *
 * A file larger than GROUPING_ALONE is its own group, after the others.
 */
#ifndef GPEMU_COMMON_PACK_GROUPING_H
#define GPEMU_COMMON_PACK_GROUPING_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/err.h"

/* Source: fs/server/object.h, the extent in which gpemu-fs reads larger files.
 */
#define GROUPING_ALONE (4u << 20)

struct grouping {
	uint32_t *file;	 /* n_files: group after group */
	uint32_t *first; /* n_groups + 1: where in `file` each begins */
	uint32_t n_files, n_groups;
};

struct grouping_files {
	uint32_t n;
	const uint64_t *bytes; /* n */
	const uint32_t *class; /* n; any numbers */
	/* The file of this path; UINT32_MAX: none. */
	uint32_t (*find)(const void *ctx, const char *path);
	const void *ctx;
	/* for an order from a file: skip unknown paths */
	bool skip_unknown;
};

/*
 * Group `files` by `size` (>= 1). -EINVAL (of a file "name:line: what"),
 * -ENOENT and others of open(2), -ENOMEM; with a text.
 */
int grouping_new(const struct grouping_files *files, uint32_t size,
		 const char *order, uint64_t seed, struct grouping *ret,
		 struct err *err);
void grouping_free(struct grouping *g);

/* Is it the name of an order, not of a file? */
bool grouping_is_order(const char *order);

/* Order of paths: component by component, bytewise. */
int grouping_compare(const char *a, const char *b);

/* `["a/b.jpg","a/c.jpg"]`, one group of the manifest: begin, a path for each
 * file, end. */
void grouping_print_path(FILE *f, const char *path, bool is_first);
void grouping_print_end(FILE *f);

#endif
