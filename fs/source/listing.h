/* SPDX-License-Identifier: MIT */
/* The files of a tree as loaders number them. */
#ifndef GPEMU_FS_SOURCE_LISTING_H
#define GPEMU_FS_SOURCE_LISTING_H

#include <stddef.h>

#include "fs/source/tree.h"

/*
 * The regular files by class, then by folder, then by name, bytewise: the order
 * of gpemu-train (loader/format/format_files.c). Files in the root count if it
 * has no folder. Hidden files and folders are left out, as by loaders. If
 * more than half of them have the name of an image, the others are left aside,
 * as by a loader that does not decode (loader/dataset/images.h): *ret_aside of
 * them, with those in the root beside folders. The nodes of their names,
 * malloc'ed: tree_file() is the file of each. -ENOMEM, -ENAMETOOLONG.
 */
int listing_make(const struct tree *t, uint32_t **ret, size_t *ret_n,
		 size_t *ret_aside);

#endif
