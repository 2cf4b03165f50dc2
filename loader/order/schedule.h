/* SPDX-License-Identifier: MIT */
/*
 * Which samples a run visits, epoch by epoch. An order plug-in or a file gives
 * the order; this process takes its share if several share an epoch.
 *
 * Sharing follows PyTorch's DistributedSampler: rank r of w visits the
 * positions r, r + w, r + 2w ... of the order. Where w does not divide the
 * samples, the order is extended by its first ones: all ranks visit equally
 * many, and a few samples come twice in an epoch, on different ranks. With
 * drop_last the end of the order is dropped instead. Source:
 * torch/utils/data/distributed.py of PyTorch 1.13.
 */
#ifndef GPEMU_LOADER_ORDER_SCHEDULE_H
#define GPEMU_LOADER_ORDER_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/err.h"
#include "loader/order/order.h"
#include "loader/order/order_text.h"

struct schedule_config {
	const struct order_ops *order;
	/* `n` samples, their sizes and groups; seed, options, batch; epoch is
	 * ignored */
	struct order_input in;
	const struct dataset *data; /* NULL: the samples have no paths */
	uint64_t rank, world;	    /* rank < world */
	bool drop_last;
	bool whole;	    /* `order` keeps the shares of all ranks */
	const char *replay; /* read the orders from there; NULL: `order` */
	const char *dump;   /* write them there, before sharing */
};

struct order_schedule {
	struct schedule_config c;
	struct order_text *replay;
	FILE *dump;
	uint64_t dumped; /* epochs below this one are in `dump` */
	uint64_t *seen;	 /* a bit for each sample; NULL: they may repeat */
	/* c.in.n: the first n are visited; `whole`: schedule_position() */
	uint32_t *order;
	uint64_t n; /* samples of an epoch on this rank */
};

/* Close with schedule_close, failed or not. `data` and what `in` points to stay
 * in use until then. -EINVAL for a file, with the position; -ENOMEM; as
 * open(2). */
int schedule_open(const struct schedule_config *c, struct order_schedule *ret,
		  struct err *err);
void schedule_close(struct order_schedule *s);

/* The position in the whole order of the i-th sample that a rank visits. */
static inline uint64_t schedule_position(const struct schedule_config *c,
					 uint64_t rank, uint64_t i)
{
	return (rank + i * c->world) % c->in.n;
}

/* May an epoch have a sample several times, or not at all? */
bool schedule_repeats(const struct order_schedule *s);
/* Fill `order` for an epoch. Errors of the order and of the files. -EINVAL with
 * a text: the order has a sample that is none, or one a second time although it
 * does not declare that it repeats. */
int schedule_fill(struct order_schedule *s, uint64_t epoch, struct err *err);
/* The samples of an epoch on all ranks: `n` of each, in turn. Uses `order`; the
 * caller owns *ret, n * world. Errors as above. */
int schedule_all(struct order_schedule *s, uint64_t epoch, uint32_t *ret,
		 struct err *err);

/* The weights by which the order draws the samples, over the largest: n of
 * them, malloc'ed. *ret NULL: it has none. Errors of the order. */
int schedule_weights(const struct order_schedule *s, float **ret,
		     struct err *err);

/* A hash of the dataset: the paths and sizes of the samples, and their groups
 * and holders if the order depends on them. */
uint64_t schedule_fingerprint(const struct order_schedule *s);

#endif
