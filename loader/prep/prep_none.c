/* SPDX-License-Identifier: MIT */
/*
 * No transforms: the batch holds the bytes as they were read, so a run measures
 * reading alone. Also the smallest example of a prep plug-in.
 */
#include "loader/prep/prep.h"

const struct prep_ops prep_none = {
	.plugin = { .name = "none", .summary = "pass on the bytes as read" },
};
