/* SPDX-License-Identifier: MIT */
/* The shards of a dataset: found, opened, and their samples listed. */
#ifndef GPEMU_LOADER_DATASET_SHARDS_H
#define GPEMU_LOADER_DATASET_SHARDS_H

#include <stddef.h>

#include "common/err.h"
#include "loader/dataset/format.h"

struct shard {
	char *path; /* relative to the root */
	int fd;	    /* open, until it is handed to a dataset */
	struct origin origin;
	struct part part; /* while it is listed */
};

struct shards {
	const struct format_ops *format;
	const void *options; /* as struct format_request */
	unsigned threads;
	struct shard *shard; /* sorted by path, bytewise */
	size_t n, capacity;
	struct dataset *d;
	struct builder *builder;
};

/*
 * Find the shards below dirfd: all files of a name that the format knows; or
 * `file` only, when it is not NULL. Open them. -ENODATA: none; -EMFILE: more
 * than descriptors allowed; errors of open(2); with a text. Free with
 * shards_fini, failed or not.
 */
int shards_open(struct shards *s, int dirfd, const char *file, struct err *err);
void shards_fini(struct shards *s);

/* List their samples into the builder. */
int shards_list(struct shards *s, struct builder *b, struct err *err);
/* Is `d`, of an index, made of just these? -ESTALE with a text. */
int shards_unchanged(const struct shards *s, const struct dataset *d,
		     struct err *err);
/* Hand the descriptors over. -ENOMEM. */
int shards_give(struct shards *s, struct dataset *d);

#endif
