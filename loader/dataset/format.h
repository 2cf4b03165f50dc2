/* SPDX-License-Identifier: MIT */
/*
 * Plug-in kind `format`: how what is in a folder or a file becomes the
 * samples of a dataset. There are two sorts.
 *
 *	shards	every file that is `named` so is a container of samples, and
 *		`scan` lists those of one; the host finds, opens and orders
 *		the files, and scans several at once
 *	trees	a sample is a whole file; `list` finds them all
 *
 * What was listed is kept in an index (index.h), and not listed again while
 * what it was made of is unchanged.
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

/* Bytes of a file's beginning that `looks` may see. */
enum { FORMAT_HEAD = 512 };

struct format_ops {
	struct plugin plugin;
	/* Is a file of this name (without folders) a shard? */
	bool (*named)(const char *name);
	/* Does a file that begins so look like one? n <= FORMAT_HEAD. */
	bool (*looks)(const uint8_t *head, size_t n);
	/*
	 * Add the samples of one shard to `ret`, in the order in which they
	 * lie; what it accepts is inside the file. `options`: the format's
	 * own; NULL: the defaults. Pure: any thread. -EINVAL
	 * for what is damaged or not supported, -ENOMEM, errors of read(2);
	 * with a text that does not name the file.
	 */
	int (*scan)(struct peek *p, const void *options, struct part *ret,
		    struct err *err);

	/* trees only */
	int (*list)(struct builder *b, unsigned threads, struct err *err);
	/* Is what `d` was listed from as it was then? 0; -ESTALE and others
	 * with a text. */
	int (*unchanged)(const struct dataset *d, unsigned threads,
			 struct err *err);
};

extern const struct plugin *const format_table[];

enum format_index { FORMAT_INDEX_AUTO, FORMAT_INDEX_OFF, FORMAT_INDEX_REBUILD };

struct format_request {
	const char *path;    /* of a folder or a file */
	const char *format;  /* its name, or "auto" */
	const void *options; /* that format's own; NULL: the defaults */
	enum format_index index;
	unsigned threads; /* that list it; 0: a default */
};

/* How a dataset was opened; free with format_result_fini. */
struct format_result {
	const struct format_ops *format;
	bool from_index;
	char *index;	     /* that was read or written; NULL: none */
	uint64_t list_ns;    /* wall time that all of it took */
	struct err not_kept; /* why no index was written, when one should */
};

/*
 * List the dataset at `path`. "auto" looks at the bytes of a file; of a
 * folder, at the names of the files in it or, where it has folders only, in
 * the first of them: where all are named as one format's shards are (but for
 * what stands beside shards: .json .txt .md .csv .yaml .idx .index), it is
 * that format, else `files`.
 *
 * -EINVAL for a name that is unknown or options that make no sense, -ENODATA:
 * no samples, -EMFILE: more shards than descriptors allowed, others as
 * format_ops.scan and open(2); with a text that names the path. Free `ret`
 * with dataset_close, failed or not.
 */
int format_open(const struct format_request *q, struct dataset *ret,
		struct format_result *ret_how, struct err *err);
void format_result_fini(struct format_result *r);

#endif
