/* SPDX-License-Identifier: MIT */
#include "loader/order.h"

#include "common/rng.h"

static void fill(uint64_t seed, uint64_t epoch, size_t n, uint32_t *ret)
{
	struct rng rng = rng_stream(seed, "order", epoch);

	for (size_t i = 0; i < n; i++)
		ret[i] = (uint32_t)i;
	rng_shuffle_u32(&rng, ret, n);
}

const struct order_ops order_shuffle = {
	.plugin = { .name = "shuffle",
		    .summary = "a new random permutation each epoch" },
	.fill = fill,
};
