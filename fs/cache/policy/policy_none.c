/* SPDX-License-Identifier: MIT */
/* No cache: every read goes to the device as requested. */
#include "fs/cache/policy.h"

const struct policy_ops policy_none = {
	.plugin = { .name = "none",
		    .summary = "no cache: the device serves each read" },
	.bypass = true,
};
