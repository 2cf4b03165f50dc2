/* SPDX-License-Identifier: MIT */
#include "loader/order.h"

static void fill(uint64_t seed, uint64_t epoch, size_t n, uint32_t *ret)
{
	(void)seed;
	(void)epoch;
	for (size_t i = 0; i < n; i++)
		ret[i] = (uint32_t)i;
}

const struct order_ops order_sequential = {
	.plugin = { .name = "sequential",
		    .summary = "as the dataset lists them, every epoch" },
	.fill = fill,
};
