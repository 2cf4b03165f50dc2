/* SPDX-License-Identifier: MIT */
/*
 * A listed dataset as one file, so that it is not listed again. It is a cache:
 * a damaged one is ignored, and the dataset is listed and the file written
 * anew. Numbers have this machine's byte order; the version differs in the
 * other byte order.
 *
 *	0	"GPEMUIX\n", sum (XXH3, 64 bits) of all after byte 16,
 *		version, number of notes (16 bits), what says the width of
 *		tokens (16 bits)
 *	24	recipe: a hash of the format and its options; counts
 *	...	path, size, offset, label, container, group: as in struct
 *		dataset; origins; notes; names. Each begins at a multiple of 8;
 *		those of containers only if there are any.
 *
 * The index does not say whether the dataset is unchanged. Formats check that
 * (format_ops.unchanged; for shards by size, time of change and inode).
 */
#ifndef GPEMU_LOADER_DATASET_INDEX_H
#define GPEMU_LOADER_DATASET_INDEX_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "loader/dataset/dataset.h"

/* 2: a document of tokens is several sequences. 3: notes, and what says the
 * width of tokens */
enum { INDEX_VERSION = 3 };

/*
 * Bytes -> dataset; fills in all but dirfd, root, container_fd, block. The
 * arrays and the notes point into `bytes`, which must be aligned to 8. Safe on
 * any input: every accepted number is in range, every name ends, every sample
 * is inside its container. Does not check the sum. -EINVAL with a text.
 */
int index_parse(void *bytes, size_t n, uint64_t recipe, struct dataset *ret,
		struct err *err);
/* Dataset -> bytes, malloc'ed, with their sum. -ENOMEM. */
int index_format(const struct dataset *d, uint64_t recipe, void **ret,
		 size_t *ret_n);

/*
 * An index file. Reading: -ENOENT, others of open(2) and read(2), -EINVAL:
 * damaged or of another recipe; sets ret->block. Writing is atomic. With a
 * text.
 */
int index_read(const char *path, uint64_t recipe, struct dataset *ret,
	       struct err *err);
int index_write(const char *path, uint64_t recipe, const struct dataset *d,
		struct err *err);

#endif
