/* SPDX-License-Identifier: MIT */
/*
 * A dataset is a list of samples. A format (format.h) builds it from a folder
 * or a file; later code does not depend on the format.
 */
#ifndef GPEMU_LOADER_DATASET_DATASET_H
#define GPEMU_LOADER_DATASET_DATASET_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "loader/dataset/notes.h"

struct bucket;

/* An origin of samples: a container, or a folder of files. */
struct origin {
	uint64_t path;	  /* in `names`; relative to dirfd */
	uint64_t size;	  /* bytes; root folder: number of visible names */
	int64_t mtime_ns; /* since 1970; root folder: 0 */
	uint64_t ino;	  /* root folder: a hash of its names */
};

/* What says how many bytes a token has. */
enum token_from {
	TOKENS_BY_DEFAULT, /* nothing */
	TOKENS_BY_OPTION,
	TOKENS_BY_INDEX,
	TOKENS_BY_HEADER, /* before the tokens, which it moves */
	TOKENS_N_FROM
};

/*
 * A sample is a whole file or a part of a container. A container is a file that
 * holds many samples and stays open.
 *
 * A name that cannot be examined (a dangling link) is a sample of size 0. Its
 * read fails, as it would in training.
 */
struct dataset {
	int dirfd; /* of the root; paths are relative to it */
	/* the root is a bucket, samples are its objects (then there is no
	 * dirfd), as they were listed (answer_tag, store/answer.h); or NULL */
	struct bucket *bucket;
	uint64_t *tag;	 /* n */
	char *root;	 /* path of the root */
	char *names;	 /* the paths, concatenated */
	uint64_t *path;	 /* n: offset in `names`; in a container the sample's
			  * own name, or else the container's path */
	uint64_t *size;	 /* n: bytes */
	uint32_t *label; /* n */
	size_t n;
	uint32_t n_classes;   /* 1 without classes */
	uint64_t bytes;	      /* of all samples */
	uint64_t largest;     /* bytes of the largest sample */
	uint32_t token_bytes; /* of each token; 0: samples are no tokens */
	uint32_t token_from;  /* enum token_from */

	/* containers; NULL, 0 where samples are files */
	int *container_fd; /* n_containers */
	uint32_t n_containers;
	uint32_t *container; /* n: index of the container; samples of a
			      * container are consecutive */
	uint64_t *offset;    /* n: bytes from the container's start */
	uint64_t stride;     /* of the offsets, in a single container; 0: they
			      * are not evenly spaced */

	/* Samples that storage reads together have the same number, below
	 * n_groups. NULL, 0: each is read alone. */
	uint32_t *group; /* n */
	uint32_t n_groups;

	/* container c is origin c; for files, all folders that hold them */
	struct origin *origin;
	size_t n_origins;
	uint64_t names_bytes;
	struct notes notes; /* what was found, of which not all is samples */
	/* one block with all arrays above but container_fd and notes, if the
	 * dataset was read from an index; NULL: separate allocations */
	void *block;
};

void dataset_close(struct dataset *d);

static inline const char *dataset_path(const struct dataset *d, size_t i)
{
	return d->names + d->path[i];
}

/* Of sample i, without a look at its size where all have the same. */
static inline uint64_t dataset_size(const struct dataset *d, size_t i)
{
	uint64_t all;

	return d->largest && !__builtin_mul_overflow(d->largest, d->n, &all) &&
			       all == d->bytes
		       ? d->largest
		       : d->size[i];
}

/* Of sample i of a container, without a look at it where all are as far apart:
 * of many samples in random order each look is a miss. */
static inline uint64_t dataset_offset(const struct dataset *d, size_t i)
{
	return d->stride ? d->offset[0] + i * d->stride : d->offset[i];
}

/* Of each sample the number of what storage reads together, below *ret_n: its
 * group, or else its container. NULL, 0: each is read alone. */
static inline const uint32_t *dataset_together(const struct dataset *d,
					       uint32_t *ret_n)
{
	*ret_n = d->group ? d->n_groups : d->n_containers;
	return d->group ? d->group : d->n_containers ? d->container : NULL;
}

/* A hash of the number, paths and sizes of the samples. */
uint64_t dataset_fingerprint(const struct dataset *d);

/* For messages, complete and on one line: "data/a.tar/dog/1.jpg", or the third
 * record of a file, "data/a.tfrecord#2". Truncated to n - 1 bytes. Returns
 * `buf`. */
const char *dataset_name(const struct dataset *d, size_t i, char *buf,
			 size_t n);

#endif
