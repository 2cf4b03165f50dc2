/* SPDX-License-Identifier: MIT */
/* A job has the GPU until it leaves, as without sharing. */
#include "share/scheduler/scheduler.h"

const struct scheduler_ops scheduler_fifo = {
	.plugin = { .name = "fifo",
		    .summary = "one job at a time until it leaves, in the "
			       "order of arrival" },
	.exclusive = true,
	.in_turn = true,
};
