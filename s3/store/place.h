/* SPDX-License-Identifier: MIT */
/*
 * From a key to the path of its file in the writable folder, and back. A key is
 * its own path if each of its parts is a name that a folder can have. All keys
 * have another one as well, for which folders never stand in the way: escaped,
 * in pieces of 200 bytes, each folder with a plus at its end:
 *
 *	a//b	.gpemu/objects/a%2F%2Fb
 *
 * Pure.
 */
#ifndef GPEMU_S3_STORE_PLACE_H
#define GPEMU_S3_STORE_PLACE_H

#include "s3/store/names.h"

#define PLACE_ODD_NAME "objects"
#define PLACE_ODD TREE_CONTROL_NAME "/" PLACE_ODD_NAME

bool place_is_path(const char *key);
/* May keys lie below the folder `path`? `odd`: see place_key. Only so deep are
 * folders that others make. */
bool place_leads(const char *path, bool odd);
/* The other one, malloc'ed; NULL: no memory. */
char *place_odd(const char *key);
/* The key of such a path, or (not `odd`) of one that is a key; false: it is
 * none. */
bool place_key(const char *path, bool odd, char ret[NAMES_MOST + 1]);

#endif
