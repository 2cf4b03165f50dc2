/* SPDX-License-Identifier: MIT */
/* Batches are slices of the epoch's order, or of a window of it, and leave in
 * that order, as from PyTorch's DataLoader. */
#include "loader/batching/batching.h"

const struct batching_ops batching_in_order = {
	.plugin = { .name = "in_order",
		    .summary = "batches leave in the order of the epoch" },
};
