/* SPDX-License-Identifier: MIT */
/* The samples of a dataset by group, for orders. */
#ifndef GPEMU_LOADER_ORDER_GROUPS_H
#define GPEMU_LOADER_ORDER_GROUPS_H

#include "loader/order/order.h"

struct order_groups {
	uint32_t n;
	size_t *first;	  /* n + 1: start of each in `sample` */
	uint32_t *sample; /* grouped; those of a group ascend */
	uint32_t *turn; /* n: the groups, 0 to n - 1; an order shuffles them */
};

/* Without groups each sample is one. -ENOMEM. groups_fini, failed or not. */
int groups_init(struct order_groups *g, const struct order_input *in);
void groups_fini(struct order_groups *g);

#endif
