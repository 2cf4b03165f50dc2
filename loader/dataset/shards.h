/* SPDX-License-Identifier: MIT */
/* The shards of a dataset: found, opened, and their samples listed. */
#ifndef GPEMU_LOADER_DATASET_SHARDS_H
#define GPEMU_LOADER_DATASET_SHARDS_H

#include <stddef.h>

#include "common/err.h"
#include "loader/dataset/format.h"

struct shard {
	char *path; /* relative to the root */
	int fd;	    /* open until a dataset takes it */
	struct origin origin;
	struct part part; /* during listing */
};

struct shards {
	const struct format_ops *format;
	const void *options; /* as struct format_request */
	unsigned threads;
	/* no option says the format: look for another one below dirfd */
	bool check;
	struct notes aside;  /* files that are no shards */
	struct shard *shard; /* sorted by path, bytewise */
	size_t n, capacity;
	struct dataset *d;
	struct builder *builder;
};

/*
 * Find the shards below dirfd and open them: all files with a name that the
 * format accepts, or only `file` if it is not NULL. -ENODATA: none; -EMFILE:
 * more than descriptors allowed; errors of open(2); with a text. Free with
 * shards_fini, failed or not.
 */
int shards_open(struct shards *s, int dirfd, const char *file, struct err *err);
void shards_fini(struct shards *s);

/*
 * Mix what is beside them (format.h) into `recipe`, a hash; *ret_mtime_ns is
 * the last change of any, 0 where there is none. -ENOMEM with a text.
 */
int shards_beside(const struct shards *s, uint64_t *recipe,
		  int64_t *ret_mtime_ns, struct err *err);
/* List their samples into the builder. */
int shards_list(struct shards *s, struct builder *b, struct err *err);
/* Was `d`, read from an index, listed from exactly these? -ESTALE with a
 * text. */
int shards_unchanged(const struct shards *s, const struct dataset *d,
		     struct err *err);
/* Move the descriptors to the dataset. -ENOMEM. */
int shards_give(struct shards *s, struct dataset *d);

#endif
