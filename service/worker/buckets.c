/* SPDX-License-Identifier: MIT */
#include "service/worker/buckets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "service/decide/rounds.h"

/* arbitrary: a thousand lengths are told apart by no padding */
enum { MOST_BUCKETS = 1024 };
/* Bytes of the rounds of a job. arbitrary: batches of 1024 for 64 consumers in
 * as many buckets take half of it */
enum { MOST_BYTES = 1 << 30 };

struct buckets {
	struct rounds *rounds;
	const struct dataset *data;
	uint64_t *boundary;
	uint32_t batch, per_round;
	const uint32_t *order; /* of the pass */
	uint64_t at, n;
	void **taken;	/* per_round */
	uint32_t *ring; /* n_ring rounds */
	uint32_t n_ring, turn;
};

static uint64_t length(const struct dataset *d, uint64_t bytes)
{
	uint64_t tokens = d->token_bytes ? bytes / d->token_bytes : 0;

	/* the last token is a label */
	return tokens ? MAX(tokens - 1, 1) : MAX(bytes, 1);
}

/* Bucket i has the lengths above i * width, up to (i + 1) * width. */
static int count_buckets(const struct dataset *d, uint64_t width, uint64_t *ret,
			 struct err *err)
{
	uint64_t most = length(d, d->largest);

	*ret = width ? (most - 1) / width + 1 : 1;
	return *ret <= MOST_BUCKETS
		       ? 0
		       : err_set(err, -EINVAL,
				 "more than %d buckets of %llu up to %llu: use "
				 "a larger bucket=",
				 MOST_BUCKETS, (unsigned long long)width,
				 (unsigned long long)most);
}

static int set_boundaries(struct buckets *b, uint64_t width, uint64_t n,
			  struct rounds_config *c)
{
	b->boundary = calloc(n, sizeof(*b->boundary));
	if (!b->boundary)
		return -ENOMEM;
	for (uint64_t i = 0; i + 1 < n; i++)
		b->boundary[i] = (i + 1) * width + 1;
	c->boundary = b->boundary;
	c->n_boundaries = (uint32_t)n - 1;
	return rounds_new(c, &b->rounds);
}

/* The trainer says how large a batch is, and how many consumers there are: what
 * both ask for is checked before memory is. */
static int check_size(const struct buckets *b, uint64_t per_round,
		      uint64_t n_buckets, struct err *err)
{
	double bytes = (double)per_round *
		       ((double)b->n_ring * sizeof(*b->ring) +
			(double)(n_buckets + 1) * sizeof(*b->taken));

	return bytes <= MOST_BYTES
		       ? 0
		       : err_set(err, -E2BIG,
				 "rounds of %llu samples in %llu buckets take "
				 "more than %d MiB: use a smaller batch or "
				 "more of each bucket=",
				 (unsigned long long)per_round,
				 (unsigned long long)n_buckets,
				 MOST_BYTES >> 20);
}

int buckets_new(const struct share *share, uint32_t batch, uint32_t most,
		const struct dataset *data, struct buckets **ret,
		struct err *err)
{
	struct rounds_config c = { .batch = batch,
				   .consumers = share->consumers };
	struct buckets *b = calloc(1, sizeof(*b));
	uint64_t per_round = (uint64_t)batch * c.consumers, n = 0;
	int r;

	if (!b)
		return err_set(err, -ENOMEM, "out of memory");
	b->data = data;
	b->batch = batch;
	b->per_round = (uint32_t)per_round;
	/* the first of them may be the last batch of its round */
	b->n_ring = most / c.consumers + 2;
	r = count_buckets(data, share->bucket, &n, err);
	if (r == 0)
		r = check_size(b, per_round, n, err);
	if (r == 0) {
		b->taken = calloc(b->per_round, sizeof(*b->taken));
		b->ring = calloc(b->n_ring, b->per_round * sizeof(*b->ring));
		r = b->taken && b->ring
			    ? set_boundaries(b, share->bucket, n, &c)
			    : -ENOMEM;
	}
	if (r < 0) {
		buckets_free(b);
		return err_set(err, r, "%s", strerror(-r));
	}
	*ret = b;
	return 0;
}

void buckets_free(struct buckets *b)
{
	if (!b)
		return;
	rounds_free(b->rounds);
	free(b->boundary);
	free(b->taken);
	free(b->ring);
	free(b);
}

void buckets_begin(struct buckets *b, const uint32_t *order, uint64_t n)
{
	b->order = order;
	b->n = n;
	b->at = 0;
}

static uint64_t sample_length(const struct buckets *b, uint32_t sample)
{
	return length(b->data, b->data->size[sample]);
}

static uint64_t longest(const struct buckets *b, const uint32_t *sample)
{
	uint64_t most = 0;

	for (uint32_t i = 0; i < b->batch; i++)
		most = MAX(most, sample_length(b, sample[i]));
	return most;
}

/* The round that was taken, in memory that no batch uses. */
static const uint32_t *put_round(struct buckets *b, uint64_t *ret_spread)
{
	uint32_t *at = b->ring + (size_t)b->turn * b->per_round;
	uint64_t least = UINT64_MAX, most = 0;

	b->turn = (b->turn + 1) % b->n_ring;
	for (uint32_t i = 0; i < b->per_round; i++)
		at[i] = (uint32_t)(uintptr_t)b->taken[i];
	for (uint32_t i = 0; i < b->per_round; i += b->batch) {
		uint64_t l = longest(b, at + i);

		least = MIN(least, l);
		most = MAX(most, l);
	}
	*ret_spread = most - least;
	return at;
}

const uint32_t *buckets_next(struct buckets *b, uint64_t *ret_spread)
{
	while (b->at < b->n) {
		uint32_t sample = b->order[b->at++];
		uint32_t bucket = rounds_add(b->rounds,
					     sample_length(b, sample),
					     (void *)(uintptr_t)sample);

		if (rounds_take(b->rounds, bucket, b->taken))
			return put_round(b, ret_spread);
	}
	return NULL;
}
