/* SPDX-License-Identifier: MIT */
#include "service/decide/rounds.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"

struct rounds {
	struct rounds_config c;
	uint32_t n_buckets, per_round;
	uint32_t *n;   /* samples of each bucket */
	void **sample; /* per_round of each bucket */
};

static bool valid(const struct rounds_config *c)
{
	for (uint32_t i = 1; i < c->n_boundaries; i++)
		if (c->boundary[i] <= c->boundary[i - 1])
			return false;
	return c->batch && c->consumers && c->n_boundaries < UINT32_MAX &&
	       c->batch <= UINT32_MAX / c->consumers;
}

int rounds_new(const struct rounds_config *c, struct rounds **ret)
{
	struct rounds *r;

	if (!valid(c))
		return -EINVAL;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	r->c = *c;
	r->n_buckets = c->n_boundaries + 1;
	r->per_round = c->batch * c->consumers;
	r->n = calloc(r->n_buckets, sizeof(*r->n));
	r->sample = calloc(r->n_buckets, r->per_round * sizeof(*r->sample));
	if (!r->n || !r->sample) {
		rounds_free(r);
		return -ENOMEM;
	}
	*ret = r;
	return 0;
}

void rounds_free(struct rounds *r)
{
	if (!r)
		return;
	free(r->n);
	free(r->sample);
	free(r);
}

static void **samples_of(const struct rounds *r, uint32_t bucket)
{
	return r->sample + (size_t)bucket * r->per_round;
}

/* The first bucket whose boundary is above the length. */
static uint32_t bucket_of(const struct rounds *r, uint64_t length)
{
	uint32_t low = 0, high = r->c.n_boundaries;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (length < r->c.boundary[mid])
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

uint32_t rounds_add(struct rounds *r, uint64_t length, void *sample)
{
	uint32_t bucket = bucket_of(r, length);

	assert(r->n[bucket] < r->per_round);
	samples_of(r, bucket)[r->n[bucket]++] = sample;
	return bucket;
}

uint32_t rounds_take(struct rounds *r, uint32_t bucket, void **ret)
{
	if (r->n[bucket] < r->per_round)
		return 0;
	memcpy(ret, samples_of(r, bucket), r->per_round * sizeof(*ret));
	r->n[bucket] = 0;
	return r->per_round;
}

int rounds_request(struct rounds_gate *g, uint32_t i, uint64_t round)
{
	if (i >= g->consumers || round != g->round)
		return -EINVAL;
	g->requested |= (uint64_t)1 << i;
	if (g->requested != UINT64_MAX >> (ROUNDS_CONSUMERS - g->consumers))
		return 0;
	g->requested = 0;
	g->round += g->workers;
	return 1;
}
