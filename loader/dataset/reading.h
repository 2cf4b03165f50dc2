/* SPDX-License-Identifier: MIT */
/* How a dataset can be read: around the page cache (O_DIRECT), and in which
 * units; in the order of its device addresses. */
#ifndef GPEMU_LOADER_DATASET_READING_H
#define GPEMU_LOADER_DATASET_READING_H

#include <stdint.h>

#include "common/err.h"
#include "loader/dataset/dataset.h"

/* The largest unit that buffers support (buffer.h aligns to it). Source:
 * logical blocks of the disks in use have 512 or 4096 bytes. */
enum { DIRECT_MAX = 4096 };

/*
 * Reads of this dataset must be multiples of this unit. The file system of its
 * first file reports it (statx(2), STATX_DIOALIGN); DIRECT_MAX if it does not;
 * never less than 512. Switches the containers to O_DIRECT. -EOPNOTSUPP with a
 * text: the file system refuses; nothing has changed.
 */
int direct_begin(const struct dataset *d, uint32_t *ret, struct err *err);

/*
 * The physical address in bytes of the first byte of each sample (FIEMAP). 0:
 * no address (an empty file, one that cannot be opened, data inside an inode).
 * On a gpemu-fs mount: the address on the emulated device, if it has addresses
 * (the attribute user.gpemu.place). *ret has `n` of the dataset; the caller
 * frees it. -EOPNOTSUPP: this file system has no such addresses; -ENOMEM.
 */
int extents_find(const struct dataset *d, uint64_t **ret, struct err *err);

#endif
