/* SPDX-License-Identifier: MIT */
/* Whether and how a dataset can be read around the page cache (O_DIRECT). */
#ifndef GPEMU_LOADER_DATASET_DIRECT_H
#define GPEMU_LOADER_DATASET_DIRECT_H

#include <stdint.h>

#include "common/err.h"
#include "loader/dataset/dataset.h"

/* The largest unit that buffers are made for (buffer.h aligns to it). Source:
 * logical blocks of the disks in use have 512 or 4096 bytes. */
enum { DIRECT_MAX = 4096 };

/*
 * The unit that reads of this dataset must be multiples of, as the file system
 * of its first file says (statx(2), STATX_DIOALIGN), or DIRECT_MAX where it
 * does not say; never less than 512. The containers are switched to O_DIRECT.
 * -EOPNOTSUPP with a text: the file system refuses; nothing has changed.
 */
int direct_begin(const struct dataset *d, uint32_t *ret, struct err *err);

#endif
