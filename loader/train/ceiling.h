/* SPDX-License-Identifier: MIT */
/* The rig's ceiling: the rate of a run whose data is always ready. */
#ifndef GPEMU_LOADER_TRAIN_CEILING_H
#define GPEMU_LOADER_TRAIN_CEILING_H

#include <stdint.h>

#include "emu/gpu/device.h"

struct ceiling {
	double samples_per_s, au;
	uint64_t steps;
	double time_scale;
	double samples_per_wall_s; /* with emulated durations of next to nothing
				    */
};

/*
 * Runs the same job on local GPUs with the engine `null`, in batches of `batch`
 * samples of `sample_bytes`, for a few steps. The time scale makes them last
 * about half a wall second, but is never slower than `time_scale`. Then the
 * same steps once more as fast as the rig can: the wall time of its own work.
 */
int ceiling_measure(const struct device_job *like, uint32_t batch,
		    uint64_t sample_bytes, double time_scale,
		    struct ceiling *ret, struct err *err);

#endif
