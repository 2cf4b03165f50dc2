/* SPDX-License-Identifier: MIT */
/* Selects the member of a sample that is read: the list of extensions
 * "jpg,png,txt". */
#ifndef GPEMU_LOADER_FORMAT_PAYLOAD_H
#define GPEMU_LOADER_FORMAT_PAYLOAD_H

#include <stddef.h>

/* The position of an extension in the list `payload`, or -1. */
int payload_rank(const char *payload, const char *ext, size_t n);

#endif
