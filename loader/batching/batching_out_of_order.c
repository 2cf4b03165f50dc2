/* SPDX-License-Identifier: MIT */
/* A batch leaves when its last sample is ready, as from PyTorch's DataLoader
 * with in_order=False: a slow sample delays only its own batch. */
#include "loader/batching/batching.h"

const struct batching_ops batching_out_of_order = {
	.plugin = { .name = "out_of_order",
		    .summary = "batches leave as they become complete" },
	.any_order = true,
};
