/* SPDX-License-Identifier: MIT */
/*
 * Plug-in kind `order`: in which order an epoch visits the samples.
 */
#ifndef GPEMU_LOADER_ORDER_ORDER_H
#define GPEMU_LOADER_ORDER_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/plugin.h"

/* What an order is made from. */
struct order_input {
	uint64_t seed, epoch;
	size_t n; /* samples of the dataset, 1 <= n <= UINT32_MAX */
	/* as struct dataset; NULL: each sample is a group of its own */
	const uint32_t *group;
	uint32_t n_groups;
	const uint64_t *size; /* n: bytes of each; NULL: not known */
	uint32_t batch;	      /* samples a step */
	const void *options;  /* the order's own; NULL: the defaults */
};

struct order_ops {
	struct plugin plugin;
	bool by_group; /* without groups it is not worth having */
	/*
	 * Write the samples 0..n-1 to `ret`, each once. The same input gives
	 * the same order on every machine. -ENOMEM, or -EINVAL when this order
	 * cannot be made of this input, with a text.
	 */
	int (*fill)(const struct order_input *in, uint32_t *ret,
		    struct err *err);
};

extern const struct plugin *const order_table[];

#endif
