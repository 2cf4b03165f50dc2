/* SPDX-License-Identifier: MIT */
/* Which member of a sample is read: the list of extensions "jpg,png,txt". */
#ifndef GPEMU_LOADER_DATASET_PAYLOAD_H
#define GPEMU_LOADER_DATASET_PAYLOAD_H

#include <stddef.h>

/* One extension of the list `payload`: its place, or -1. */
int payload_rank(const char *payload, const char *ext, size_t n);

#endif
