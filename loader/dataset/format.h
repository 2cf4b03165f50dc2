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
 * The result is kept in an index (index.h) and reused until the files it was
 * listed from change.
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
	int (*scan)(struct peek *p, const void *options, struct part *ret,
		    struct err *err);

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

enum format_index { FORMAT_INDEX_AUTO, FORMAT_INDEX_OFF, FORMAT_INDEX_REBUILD };

struct format_request {
	const char *path;    /* of a folder or a file */
	const char *format;  /* its name, or "auto" */
	const void *options; /* that format's own; NULL: the defaults */
	/* the samples are decoded as images; false: whether it is a dataset of
	 * images is decided by its majority (images.h) */
	bool images;
	enum format_index index;
	unsigned threads; /* for listing; 0: a default */
};

/* How a dataset was opened; free with format_result_fini. */
struct format_result {
	const struct format_ops *format;
	bool from_index;
	char *index;	     /* path of the index read or written; NULL: none */
	uint64_t list_ns;    /* wall time of the whole open */
	struct err not_kept; /* why no index was written although one was due */
};

/*
 * List the dataset at `path`. "auto" checks the first bytes of a file. In a
 * folder it checks the names of the files, or, if it has folders only, those in
 * the first one (detect.h): shards of one format, or `files`. What lies beside
 * shards is left aside and noted (dataset.notes).
 *
 * -EINVAL: unknown name or inconsistent options; files of two formats, or of
 * one that is not supported; -ENODATA: no samples; -EMFILE: more shards than
 * descriptors allowed; others as format_ops.scan and open(2). The text names
 * the path. Free `ret` with dataset_close, failed or not.
 */
int format_open(const struct format_request *q, struct dataset *ret,
		struct format_result *ret_how, struct err *err);
void format_result_fini(struct format_result *r);

#endif
