/* SPDX-License-Identifier: MIT */
/* The format of a folder or a file, where no option says it ("auto"). */
#ifndef GPEMU_LOADER_DATASET_DETECT_H
#define GPEMU_LOADER_DATASET_DETECT_H

#include <limits.h>

#include "common/err.h"
#include "loader/dataset/format.h"

/*
 * What the names of files say, one after the other: start with zeros. All that
 * it has is the number of files of each sort, and one of them by name.
 */
struct detect {
	const struct format_ops *shards; /* of the first shard; NULL: none */
	const char *unsupported;	 /* a format; NULL: none */
	bool beside; /* of a sort that is also written beside shards */
	bool images; /* some are images by their names */
	bool others; /* neither, nor beside shards */
	char shard[NAME_MAX + 1], other_shard[NAME_MAX + 1];
	char image[NAME_MAX + 1], foreign[NAME_MAX + 1];
	const struct format_ops *second; /* of other_shard; NULL: one format */
};

/* Without folders. */
void detect_name(struct detect *d, const char *name);
/*
 * *ret: the one format of the shards among them, beside whatever is no shard;
 * NULL: a folder of files, or of nothing that decides. -EINVAL with a text that
 * names --format: two formats; shards and images; shards of a format that is
 * not supported.
 */
int detect_format(const struct detect *d, const struct format_ops **ret,
		  struct err *err);

/*
 * Of a dataset that was listed as files, as its first folder has no shards: nor
 * may another class begin with one. -EINVAL with a text that names --format.
 */
int detect_listed(const struct dataset *d, struct err *err);

/* Of the folder `dirfd`: of the names in it or, if it has folders only, in the
 * first of them. */
int detect_folder(int dirfd, const struct format_ops **ret, struct err *err);
/* Of the file `name` in it, by its first bytes. -EINVAL: of none. */
int detect_file(int dirfd, const char *name, const struct format_ops **ret,
		struct err *err);

/* By its name; NULL: unknown, with a text. */
const struct format_ops *detect_find(const char *format, struct err *err);

#endif
