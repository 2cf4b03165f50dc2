/* SPDX-License-Identifier: MIT */
/* The copy that a driver makes of a batch in pageable memory. */
#ifndef GPEMU_LOADER_TRAIN_STAGE_H
#define GPEMU_LOADER_TRAIN_STAGE_H

#include <stdint.h>

#include "loader/pipeline/pipeline.h"

/*
 * From pageable memory a device cannot read: the driver copies the batch
 * piece by piece into a buffer of its own, on the thread that asked. That
 * copy is real; the profile's time of the transfer holds its cost, and is
 * waited for beyond it. Returns the emulated ns it took.
 */
uint64_t stage_batch(const struct tick *tick, const struct delivery *d);

#endif
