/* SPDX-License-Identifier: MIT */
#include "service/decide/pecan.h"

#include <errno.h>
#include <math.h>

struct pecan_cost pecan_cost(const struct pecan_transform *t,
			     const uint32_t *order, uint32_t n,
			     uint32_t n_remote)
{
	struct pecan_cost ret = { .sent = 1 };
	double bytes = 1;

	for (uint32_t i = 0; i < n; i++) {
		ret.cpu += bytes * t[order[i]].cost;
		bytes *= t[order[i]].size;
		if (i + 1 == n_remote)
			ret.sent = bytes;
	}
	return ret;
}

static int sign(double v)
{
	return (v > 0) - (v < 0);
}

/* Does j belong before i, which stands before it? */
static bool is_before(const struct pecan_transform *j,
		      const struct pecan_transform *i)
{
	int grows_j = sign(j->size - 1), grows_i = sign(i->size - 1);

	/* also where a cost of 0 makes the order of the two free */
	if (grows_i != grows_j)
		return grows_j < grows_i;
	return (j->size - 1) * i->cost < (i->size - 1) * j->cost;
}

/* Insertion: stable, and the pipelines are short. */
static void sort(const struct pecan_transform *t, uint32_t *order, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++) {
		uint32_t x = order[i], k = i;

		while (k > 0 && t[x].commutes && t[order[k - 1]].commutes &&
		       is_before(&t[x], &t[order[k - 1]])) {
			order[k] = order[k - 1];
			k--;
		}
		order[k] = x;
	}
}

static bool valid(const struct pecan_transform *t)
{
	return isfinite(t->size) && t->size > 0 && isfinite(t->cost) &&
	       t->cost >= 0;
}

int pecan_plan(const struct pecan_transform *t, uint32_t n,
	       struct pecan_plan *ret)
{
	double bytes = 1, least = 1;

	if (n > PECAN_MOST)
		return -EINVAL;
	for (uint32_t i = 0; i < n; i++) {
		if (!valid(&t[i]))
			return -EINVAL;
		ret->order[i] = i;
	}
	sort(t, ret->order, n);
	ret->n_remote = 0;
	for (uint32_t i = 0; i < n; i++) {
		bytes *= t[ret->order[i]].size;
		if (bytes <= least) {
			least = bytes;
			ret->n_remote = i + 1;
		}
	}
	ret->cost = pecan_cost(t, ret->order, n, ret->n_remote);
	return 0;
}
