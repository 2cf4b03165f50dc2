/* SPDX-License-Identifier: MIT */
/*
 * Groups in random order, and their samples in random order within a window of
 * groups:
 *
 *	groups   | 7  2 | 5  0 | 3  6 | 1  4 |	window 2
 *	samples  | of 7 and 2, mixed | of 5 and 0, mixed | ...
 *
 * Storage that reads whole groups and keeps `window` of them then reads each
 * group only once. Source: DIESEL (Wang et al., ICPP 2020), chunk-wise shuffle.
 */
#include "loader/order/order.h"

#include <errno.h>

#include "common/conf/conf.h"
#include "common/rng.h"
#include "common/util.h"
#include "loader/order/groups.h"

struct options {
	uint64_t window;
};

static const struct conf_field fields[] = {
	{ CONF_KEY(window, CONF_UINT, struct options), .max = 4294967295.,
	  .arg = "N",
	  .help = "groups mixed at a time; 0: as many as hold two batches" },
	{ 0 },
};

static const struct options defaults = { .window = 0 };

/* Enough groups to hold two batches, so that a batch mixes samples of many
 * groups. */
static uint64_t default_window(const struct order_input *in, uint32_t n_groups)
{
	uint64_t n = 2 * (uint64_t)in->batch * n_groups;

	return MAX((n + in->n - 1) / in->n, 1);
}

static int fill_group(const struct order_input *in, uint32_t *ret,
		      struct err *err)
{
	const struct options *o = in->options ? in->options : &defaults;
	struct rng rng = rng_stream(in->seed, "order", in->epoch);
	_cleanup_(groups_fini) struct order_groups g = { 0 };
	uint64_t window;
	size_t n = 0, begun = 0;

	if (groups_init(&g, in) < 0)
		return err_set(err, -ENOMEM, "out of memory for an order");
	window = o->window ? o->window : default_window(in, g.n);
	rng_shuffle_u32(&rng, g.turn, g.n);
	for (uint32_t i = 0; i < g.n; i++) {
		uint32_t k = g.turn[i];

		for (size_t j = g.first[k]; j < g.first[k + 1]; j++)
			ret[n++] = g.sample[j];
		if ((i + 1) % window && i + 1 < g.n)
			continue;
		rng_shuffle_u32(&rng, ret + begun, n - begun);
		begun = n;
	}
	return 0;
}

const struct order_ops order_group = {
	.plugin = { .name = "group",
		    .summary = "groups shuffled, then samples within a window "
			       "of groups",
		    PLUGIN_OPTIONS(fields, defaults) },
	.by_group = true,
	.fill = fill_group,
};
