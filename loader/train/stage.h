/* SPDX-License-Identifier: MIT */
/* The driver's copy of a batch in pageable memory. */
#ifndef GPEMU_LOADER_TRAIN_STAGE_H
#define GPEMU_LOADER_TRAIN_STAGE_H

#include <stdint.h>

#include "loader/pipeline/pipeline.h"

/*
 * A device cannot read pageable memory: the driver copies the batch piece by
 * piece into its own buffer, on the calling thread. This copy is real. The
 * profile's transfer time includes its cost; only the rest of that time is
 * waited for. Returns the emulated ns that the copy took.
 */
uint64_t stage_batch(const struct tick *tick, const struct delivery *d);

#endif
