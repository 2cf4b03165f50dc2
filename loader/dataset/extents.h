/* SPDX-License-Identifier: MIT */
/* Where on the device samples begin, as the file system tells. */
#ifndef GPEMU_LOADER_DATASET_EXTENTS_H
#define GPEMU_LOADER_DATASET_EXTENTS_H

#include <stdint.h>

#include "common/err.h"
#include "loader/dataset/dataset.h"

/*
 * The physical address in bytes of the first byte of each sample (FIEMAP), 0
 * where there is none: an empty file, one that cannot be opened, data inside
 * an inode. On a gpemu-fs mount the place on the emulated device, where it has
 * places (the attribute user.gpemu.place). *ret has `n` of the dataset and is
 * freed by the caller. -EOPNOTSUPP: this file system has no such addresses;
 * -ENOMEM.
 */
int extents_find(const struct dataset *d, uint64_t **ret, struct err *err);

#endif
