/* SPDX-License-Identifier: MIT */
/*
 * Plug-in kind `order`, the sampler: the order in which an epoch visits the
 * samples.
 */
#ifndef GPEMU_LOADER_ORDER_ORDER_H
#define GPEMU_LOADER_ORDER_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/plugin.h"

/* Of order_input.holder. */
#define ORDER_NOBODY UINT32_MAX

/* The input of an order. */
struct order_input {
	uint64_t seed, epoch;
	size_t n; /* samples of the dataset, 1 <= n <= UINT32_MAX */
	/* as struct dataset, or the shards that hold the samples; NULL: each
	 * sample is a group of its own */
	const uint32_t *group;
	uint32_t n_groups;
	const uint64_t *size; /* n: bytes of each; NULL: unknown */
	/* n: the class of each, below n_labels; NULL: all are of one */
	const uint32_t *label;
	uint32_t n_labels;
	uint32_t batch; /* samples per step and rank */
	uint32_t world; /* ranks that share the order; 0: one */
	/* n: the rank whose cache holds each, or ORDER_NOBODY; NULL: unknown */
	const uint32_t *holder;
	const void *options; /* the order's own; NULL: the defaults */
};

struct order_ops {
	struct plugin plugin;
	bool by_group;	/* useless without groups */
	bool by_holder; /* uses `holder` */
	bool repeats;	/* an epoch may have a sample several times, or not */
	/* The file that `fill` reads, or NULL. Services, whose options are
	 * those of another machine, refuse it. NULL: none. */
	const char *(*file_of)(const void *options);
	/* The weights of all samples, 0 or more, by which `fill` draws: to
	 * `ret`, n. Errors as below. NULL: there are none. */
	int (*weigh)(const struct order_input *in, double *ret,
		     struct err *err);
	/*
	 * Write n samples below n to `ret`; unless it `repeats`, each once: the
	 * schedule refuses an order that does otherwise. The same input gives
	 * the same order on every machine. -ENOMEM; -EINVAL with a text: this
	 * input does not suit the order.
	 */
	int (*fill)(const struct order_input *in, uint32_t *ret,
		    struct err *err);
};

extern const struct plugin *const order_table[];

#endif
