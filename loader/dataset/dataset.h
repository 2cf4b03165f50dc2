/* SPDX-License-Identifier: MIT */
/*
 * A dataset: a list of samples. A format (format.h) makes it of what is in a
 * folder or a file; afterwards nobody needs to know which.
 */
#ifndef GPEMU_LOADER_DATASET_DATASET_H
#define GPEMU_LOADER_DATASET_DATASET_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

/* What samples come from: a container, or a folder of files. */
struct origin {
	uint64_t path;	  /* in `names`; relative to dirfd */
	uint64_t size;	  /* bytes; of the root folder: its visible names */
	int64_t mtime_ns; /* since 1970; of the root folder: 0 */
	uint64_t ino;	  /* of the root folder: a hash of its names */
};

/*
 * A sample is a whole file, or a part of a container, a file that holds many
 * samples and stays open.
 *
 * A name that cannot be looked at (a dangling link) is a sample of size 0: it
 * fails when it is read, as it would in training.
 */
struct dataset {
	int dirfd;	 /* of the root; paths are relative to it */
	char *root;	 /* the path to it */
	char *names;	 /* the paths, one after the other */
	uint64_t *path;	 /* n: where in `names`; of a container's sample its
			  * name there, or the container's own path */
	uint64_t *size;	 /* n: bytes */
	uint32_t *label; /* n */
	size_t n;
	uint32_t n_classes; /* 1 without classes */
	uint64_t bytes;	    /* of all samples */
	uint64_t largest;   /* bytes of the largest sample */

	/* of containers; NULL, 0 where samples are files */
	int *container_fd; /* n_containers */
	uint32_t n_containers;
	uint32_t *container; /* n: in which one; a container's samples follow
			      * one another */
	uint64_t *offset;    /* n: bytes from its start */

	/* Samples that storage reads together have the same number, below
	 * n_groups. NULL, 0: each is read alone. */
	uint32_t *group; /* n */
	uint32_t n_groups;

	/* container c is origin c; of files, all folders they are in */
	struct origin *origin;
	size_t n_origins;
	uint64_t names_bytes;
	/* what holds all arrays above but container_fd, when it was read from
	 * an index; NULL: each is an allocation of its own */
	void *block;
};

/*
 * List `dir` as format `files` does, without an index. -ENOENT, -ENOTDIR,
 * -EACCES: as open(2); -ENODATA: no sample; -E2BIG: more samples than 32 bits
 * count. Free with dataset_close, failed or not.
 */
int dataset_open(const char *dir, struct dataset *ret, struct err *err);
void dataset_close(struct dataset *d);

static inline const char *dataset_path(const struct dataset *d, size_t i)
{
	return d->names + d->path[i];
}

/* For messages, whole and on one line: "data/a.tar/dog/1.jpg", or the third
 * record of its file, "data/a.tfrecord#2"; cut off at n - 1 bytes. Returns
 * `buf`. */
const char *dataset_name(const struct dataset *d, size_t i, char *buf,
			 size_t n);

#endif
