/* SPDX-License-Identifier: MIT */
/* Device addresses of samples, as the file system reports them. */
#ifndef GPEMU_LOADER_DATASET_EXTENTS_H
#define GPEMU_LOADER_DATASET_EXTENTS_H

#include <stdint.h>

#include "common/err.h"
#include "loader/dataset/dataset.h"

/*
 * The physical address in bytes of the first byte of each sample (FIEMAP). 0:
 * no address (an empty file, one that cannot be opened, data inside an inode).
 * On a gpemu-fs mount: the address on the emulated device, if it has addresses
 * (the attribute user.gpemu.place). *ret has `n` of the dataset; the caller
 * frees it. -EOPNOTSUPP: this file system has no such addresses; -ENOMEM.
 */
int extents_find(const struct dataset *d, uint64_t **ret, struct err *err);

#endif
