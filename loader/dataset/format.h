/* SPDX-License-Identifier: MIT */
/*
 * Plug-in kind `format`: how the contents of a folder or a file become the
 * samples of a dataset. There are two sorts.
 *
 *	shards	every file that `named` accepts is a container of samples.
 *		`scan` lists the samples of one; the host finds, opens and
 *		sorts the files, and scans several at once
 *	trees	a sample is a whole file; `list` finds them all
 *
 * The result is kept in an index (format_open.h) and reused until the files it
 * was listed from change.
 */
#ifndef GPEMU_LOADER_DATASET_FORMAT_H
#define GPEMU_LOADER_DATASET_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/plugin.h"
#include "loader/dataset/dataset.h"
#include "loader/dataset/part.h"
#include "loader/dataset/peek.h"

/* Bytes at the start of a file that `looks` may examine. */
enum { FORMAT_HEAD = 512 };

struct format_ops {
	struct plugin plugin;
	/* Is a file of this name (without folders) a shard? */
	bool (*named)(const char *name);
	/* Only its name chooses it: "auto" does not, by names or by bytes. */
	bool explicit;
	/* Does a file that begins so look like a shard? n <= FORMAT_HEAD. */
	bool (*looks)(const uint8_t *head, size_t n);
	/*
	 * Add the samples of one shard to `ret`, in the order of their offsets.
	 * It accepts only samples inside the file. `options`: the format's
	 * own; NULL: the defaults. Pure: any thread. -EINVAL: damaged or not
	 * supported; -ENOMEM; errors of read(2). The text does not name the
	 * file.
	 */
	int (*scan)(struct peek *p, const void *options,
		    struct dataset_part *ret, struct err *err);

	/*
	 * The path of a file that `scan` reads beside the shard at `path`,
	 * whose name was accepted: an index is dropped when it changes.
	 * malloc'ed; NULL: out of memory. A NULL hook: there is none.
	 */
	char *(*beside)(const char *path);

	/* A sample is a whole file, with its name: of a dataset of images the
	 * others are left aside (images.h). */
	bool whole_files;

	/* trees only */
	int (*list)(struct builder *b, unsigned threads, struct err *err);
	/* Are the files that `d` was listed from unchanged? 0; -ESTALE and
	 * others with a text. */
	int (*unchanged)(const struct dataset *d, unsigned threads,
			 struct err *err);
};

extern const struct plugin *const format_table[];

#endif
