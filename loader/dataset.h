/* SPDX-License-Identifier: MIT */
/*
 * A dataset as a folder of files, listed as torchvision's ImageFolder lists
 * it: every folder of the root is a class, classes in byte order of their
 * names, labels counted from 0; within a class all regular files below it,
 * folder by folder, in byte order. Files that stand in the root count only
 * where there is no class folder; their label is 0. Hidden names are skipped.
 *
 * A name that cannot be looked at (a dangling link) is a sample of size 0: it
 * fails when it is read, as it would in training.
 */
#ifndef GPEMU_LOADER_DATASET_H
#define GPEMU_LOADER_DATASET_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

/*
 * A sample is a whole file, or a part of a container, a file that holds many
 * samples and stays open.
 */
struct dataset {
	int dirfd;	 /* of the root; paths are relative to it */
	char *names;	 /* the paths, one after the other */
	size_t *path;	 /* n: where in `names`; of a container's sample the
			  * name that messages use */
	uint64_t *size;	 /* n: bytes */
	uint32_t *label; /* n */
	size_t n;
	uint32_t n_classes; /* 1 without class folders */
	uint64_t bytes;	    /* of all samples */
	uint64_t largest;   /* bytes of the largest sample */

	/* of containers; NULL, 0 where samples are files */
	int *container_fd; /* n_containers */
	uint32_t n_containers;
	uint32_t *container; /* n: in which one */
	uint64_t *offset;    /* n: bytes from its start */

	/* Samples that storage reads together have the same number, below
	 * n_groups. NULL, 0: each is read alone. */
	uint32_t *group; /* n */
	uint32_t n_groups;
};

/*
 * Scan `dir`. -ENOENT, -ENOTDIR, -EACCES: as open(2); -ENODATA: no sample;
 * -E2BIG: more samples than 32 bits count. Free with dataset_close, failed or
 * not.
 */
int dataset_open(const char *dir, struct dataset *ret, struct err *err);
void dataset_close(struct dataset *d);

static inline const char *dataset_path(const struct dataset *d, size_t i)
{
	return d->names + d->path[i];
}

#endif
