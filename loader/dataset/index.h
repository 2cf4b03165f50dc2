/* SPDX-License-Identifier: MIT */
/*
 * A listed dataset as one file, so that it need not be listed again. It is a
 * cache: whatever is wrong with it, the dataset is listed and it is written
 * anew. All numbers are as this machine has them; one from another byte order
 * has another version.
 *
 *	0	"GPEMUIX\n", sum (XXH3, 64 bits) of all behind byte 16,
 *		version, reserved
 *	24	recipe: a hash of the format and its options; counts
 *	...	path, size, offset, label, container, group: as in struct
 *		dataset; origins; names. Each begins at a multiple of 8; those
 *		of containers only where there are some.
 *
 * It says nothing of whether the dataset is still so: formats know
 * (format_ops.unchanged; of shards size, time of change and inode).
 */
#ifndef GPEMU_LOADER_DATASET_INDEX_H
#define GPEMU_LOADER_DATASET_INDEX_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "loader/dataset/dataset.h"

enum { INDEX_VERSION = 1 };

/*
 * Bytes -> dataset, with all but dirfd, root, container_fd, block filled in;
 * its arrays are parts of `bytes`, which must be aligned to 8. Trusts nothing:
 * every number that it accepts is in range, every name ends, every sample is
 * inside its container. The sum is not looked at. -EINVAL with a text.
 */
int index_parse(void *bytes, size_t n, uint64_t recipe, struct dataset *ret,
		struct err *err);
/* Dataset -> bytes, malloc'ed, with their sum. -ENOMEM. */
int index_format(const struct dataset *d, uint64_t recipe, void **ret,
		 size_t *ret_n);

/*
 * A file. Reading: -ENOENT, others of open(2) and read(2), -EINVAL for a
 * damaged one or another recipe; ret->block is set. Writing is atomic.
 * With a text.
 */
int index_read(const char *path, uint64_t recipe, struct dataset *ret,
	       struct err *err);
int index_write(const char *path, uint64_t recipe, const struct dataset *d,
		struct err *err);

#endif
