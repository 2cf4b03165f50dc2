/* SPDX-License-Identifier: MIT */
/* Whether a dataset can be read around the page cache (O_DIRECT), and in which
 * units. */
#ifndef GPEMU_LOADER_DATASET_DIRECT_H
#define GPEMU_LOADER_DATASET_DIRECT_H

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

#endif
