/* SPDX-License-Identifier: MIT */
/*
 * Plug-in kind `source`: where the mount gets the bytes. The word before the
 * first ':' of SOURCE ("pack:FILE") selects it; a plain path selects `dir`.
 */
#ifndef GPEMU_FS_SOURCE_SOURCE_H
#define GPEMU_FS_SOURCE_SOURCE_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

#include "common/err.h"
#include "common/pack/grouping.h"
#include "common/plugin.h"
#include "fs/source/tree.h"

struct source_ops {
	struct plugin plugin;
	/* Threads that reads are worth, where they block; 0: the default. */
	unsigned readers;
	/* `arg`: the text after the ':'. -errno with a text. */
	int (*init)(void *state, const char *arg, struct err *err);
	/* After init, also a failed one. */
	void (*fini)(void *state);
	/* Fill the tree, which is empty before. -errno with a text. */
	int (*scan)(void *state, struct tree *tree, struct err *err);
	/* Get ready for reads, after scan; what only lists the files leaves it
	 * out. -errno with a text. NULL: nothing to do. */
	int (*prepare)(void *state, struct err *err);
	/*
	 * Read `n` bytes at `offset` of a file into `buf`: all of them, or
	 * -errno. In the tree the file has at least offset + n bytes; -ESTALE
	 * when it has shrunk since. With `nowait`, -EAGAIN instead of
	 * blocking on the source's own storage. Any thread.
	 */
	int (*read)(void *state, const struct tree *tree, uint32_t node,
		    void *buf, size_t n, uint64_t offset, bool nowait);
	/*
	 * A new descriptor of the file, from which the kernel reads by itself
	 * (fs/front/passthrough.h). NULL: the source has no such files.
	 */
	int (*open)(void *state, const struct tree *tree, uint32_t node);
	/* The target of a symbolic link, with its NUL. -errno. */
	int (*readlink)(void *state, const struct tree *tree, uint32_t node,
			char *buf, size_t n);
	/* The groups that the source was made with: `file` holds nodes, each
	 * regular file once. -ENOMEM. NULL: the source has none. */
	int (*groups)(void *state, const struct tree *tree,
		      struct grouping *ret);
	/* What the source itself counts, as an object. NULL: no memory, or the
	 * source has nothing. Any thread. */
	json_t *(*stats)(void *state);
};

extern const struct plugin *const source_table[];

/* The source that SOURCE selects, and its `arg`, which borrows from it. NULL
 * with a text: no such kind. */
const struct source_ops *source_of(const char *spec, const char **ret_arg,
				   struct err *err);
/* Read as source_ops.read does, from a file that is open. */
int source_pread(int fd, char *buf, size_t n, uint64_t offset, bool nowait);
/* Fill a new tree with the names and sizes of a source, and close that. -errno
 * with a text. tree_fini, failed or not; it may be all zeros. */
int source_list(const struct source_ops *ops, const char *arg, struct tree *ret,
		struct err *err);

#endif
