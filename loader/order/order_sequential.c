/* SPDX-License-Identifier: MIT */
#include "loader/order/order.h"

static int fill_sequential(const struct order_input *in, uint32_t *ret,
			   struct err *err)
{
	(void)err;
	for (size_t i = 0; i < in->n; i++)
		ret[i] = (uint32_t)i;
	return 0;
}

const struct order_ops order_sequential = {
	.plugin = { .name = "sequential",
		    .summary = "as the dataset lists them, every epoch" },
	.fill = fill_sequential,
};
