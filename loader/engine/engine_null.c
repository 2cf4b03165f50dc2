/* SPDX-License-Identifier: MIT */
/*
 * No files, no workers: batches are there when asked for. What remains is the
 * rig itself, so its result is the ceiling of every other engine's.
 */
#include "loader/engine/engine.h"

const struct engine_ops engine_null = {
	.plugin = { .name = "null",
		    .summary = "synthetic batches, to measure the rig itself" },
};
