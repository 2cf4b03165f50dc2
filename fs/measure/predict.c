/* SPDX-License-Identifier: MIT */
#include "fs/measure/predict.h"

#include <errno.h>
#include <stdlib.h>

#include "common/heap.h"
#include "common/rng.h"
#include "common/units.h"
#include "common/util.h"
#include "fs/device/device.h"

static enum storage_op op_of(enum point_kind kind)
{
	static const enum storage_op ops[] = {
		[POINT_RANDOM] = STORAGE_READ,
		[POINT_SEQUENTIAL] = STORAGE_READ,
		[POINT_GET] = STORAGE_READ,
		[POINT_LOOKUP] = STORAGE_LOOKUP,
		[POINT_OPEN] = STORAGE_OPEN,
		[POINT_READDIR] = STORAGE_READDIR,
	};

	return ops[kind];
}

/* The next operation of a client: all on one file, as measured. */
static uint64_t schedule(struct device *d, const struct point *p,
			 struct rng *rng, uint64_t i, uint64_t now)
{
	bool read = p->kind <= POINT_GET;
	uint64_t at = p->kind == POINT_SEQUENTIAL ? i : rng_below(rng, 1 << 20);

	return device_schedule(d, op_of(p->kind), read ? 1 : i, at * p->bytes,
			       p->bytes, now);
}

static int simulate(const struct storage_profile *profile,
		    const struct point *p, struct point *ret)
{
	enum { MANY = 20000 };
	uint64_t n = MANY + p->depth, now = 0, warm = 0;
	_cleanup_free_ uint64_t *done = calloc(p->depth, sizeof(*done));
	_cleanup_free_ struct hist *h = calloc(1, sizeof(*h));
	struct rng rng = rng_stream(0, "predict", p->depth);
	struct device *d = NULL;

	if (!done || !h || device_new(profile, 0, &d) < 0)
		return -ENOMEM;
	/* `done` is a heap of completions, the earliest first: each makes room
	 * for an operation */
	for (uint64_t i = 0; i < n; i++) {
		now = done[0];
		if (i == p->depth)
			warm = now;
		done[0] = schedule(d, p, &rng, i, now);
		if (i >= p->depth)
			hist_add_alone(h, done[0] - now, 1);
		heap_times_down(done, p->depth, 0);
	}
	device_free(d);
	*ret = *p;
	point_fill(ret, h, MANY, now - warm);
	return 0;
}

int predict_point(const struct storage_profile *profile, const struct point *p,
		  struct point *ret)
{
	struct point first = *p, whole;
	int r = simulate(profile, p, &whole);

	first.bytes = MIN(first.bytes, 4 * KIB);
	if (r == 0 && p->kind == POINT_GET)
		r = simulate(profile, &first, &first);
	if (r == 0 && p->kind == POINT_GET) {
		first.bytes = p->bytes;
		first.per_s = whole.per_s;
		first.rest_ns = storage_channel_ns(profile, (double)p->bytes);
		whole = first;
	}
	if (r == 0)
		*ret = whole;
	return r;
}
