/* SPDX-License-Identifier: MIT */
#include "loader/order/order.h"

#include "common/rng.h"

static int fill_shuffle(const struct order_input *in, uint32_t *ret,
			struct err *err)
{
	struct rng rng = rng_stream(in->seed, "order", in->epoch);

	(void)err;
	rng_permutation_u32(&rng, ret, in->n);
	return 0;
}

const struct order_ops order_shuffle = {
	.plugin = { .name = "shuffle",
		    .summary = "a new random permutation each epoch" },
	.fill = fill_shuffle,
};
