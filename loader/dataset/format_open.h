/* SPDX-License-Identifier: MIT */
/* Open a dataset of any format (format.h), from its index or by listing it. */
#ifndef GPEMU_LOADER_DATASET_FORMAT_OPEN_H
#define GPEMU_LOADER_DATASET_FORMAT_OPEN_H

#include "loader/dataset/format.h"

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
