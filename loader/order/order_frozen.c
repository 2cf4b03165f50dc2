/* SPDX-License-Identifier: MIT */
#include "loader/order/order.h"

#include "common/rng.h"

/* The first epoch's order of `shuffle`, in every epoch. */
static int fill_frozen(const struct order_input *in, uint32_t *ret,
		       struct err *err)
{
	struct rng rng = rng_stream(in->seed, "order", 0);

	(void)err;
	rng_permutation_u32(&rng, ret, in->n);
	return 0;
}

const struct order_ops order_frozen = {
	.plugin = { .name = "frozen",
		    .summary = "one random permutation, every epoch" },
	.fill = fill_frozen,
};
