/* SPDX-License-Identifier: MIT */
/*
 * No files, no workers: batches are ready at once. Only the rig's own cost
 * remains, so its result is the ceiling of every other engine.
 */
#include "loader/engine/engine.h"

const struct engine_ops engine_null = {
	.plugin = { .name = "null",
		    .summary = "synthetic batches, to measure this machine "
			       "itself" },
};
