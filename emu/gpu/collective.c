/* SPDX-License-Identifier: MIT */
#include "emu/gpu/collective.h"

#include "common/units.h"
#include "common/word.h"
#include "emu/gpu/link.h"

/* Source: PyTorch, DistributedDataParallel: bucket_cap_mb = 25, and the first
 * bucket, dist._DEFAULT_FIRST_BUCKET_BYTES, small so that the all-reduce begins
 * early */
#define FIRST_BUCKET MIB
#define BUCKET (25 * MIB)

int collective_parse(const char *s, enum collective_algorithm *ret,
		     struct err *err)
{
	static const char *const names[] = {
		[COLLECTIVE_AUTO] = "auto",
		[COLLECTIVE_RING] = "ring",
		[COLLECTIVE_TREE] = "tree",
	};

	return WORD_INTO(names, "--allreduce", s, ret, err);
}

static struct collective_bucket ring(const struct collective *c, uint64_t bytes)
{
	uint64_t hops = 2 * ((uint64_t)c->ranks - 1);

	return (struct collective_bucket){ .bytes = bytes * hops / c->ranks,
					   .latency_ns = hops * c->latency_ns };
}

static struct collective_bucket tree(const struct collective *c, uint64_t bytes)
{
	uint64_t depth = 0;

	while ((UINT64_C(1) << depth) < c->ranks)
		depth++;
	return (struct collective_bucket){
		.bytes = 2 * bytes, .latency_ns = 2 * depth * c->latency_ns
	};
}

static uint64_t takes(const struct collective *c,
		      const struct collective_bucket *b)
{
	return link_ns(c->bytes_per_s, b->bytes) + b->latency_ns;
}

static struct collective_bucket bucket_of(const struct collective *c,
					  uint64_t bytes)
{
	struct collective_bucket r = ring(c, bytes), t = tree(c, bytes);

	switch (c->algorithm) {
	case COLLECTIVE_RING: return r;
	case COLLECTIVE_TREE: return t;
	case COLLECTIVE_AUTO: break;
	}
	return takes(c, &t) < takes(c, &r) ? t : r;
}

/* The time at which the last device has the first `bytes` of its gradients. */
static uint64_t ready(const struct collective *c,
		      const struct collective_pass *pass, size_t n,
		      uint64_t bytes)
{
	double share = (double)bytes / (double)c->bytes;
	uint64_t last = 0;

	for (size_t i = 0; i < n; i++) {
		uint64_t ns = pass[i].end - pass[i].start;
		uint64_t at =
			pass[i].end - (uint64_t)((1 - share) * (double)ns);

		last = MAX(last, at);
	}
	return last;
}

uint64_t collective_each(const struct collective *c,
			 const struct collective_pass *pass, size_t n,
			 void (*bucket)(void *ctx,
					const struct collective_bucket *b),
			 void *ctx)
{
	uint64_t at = 0, done = 0, most = FIRST_BUCKET;

	for (size_t i = 0; i < n; i++)
		at = MAX(at, pass[i].end);
	if (c->ranks < 2 || c->bytes == 0)
		return at;
	for (at = 0; done < c->bytes; most = BUCKET) {
		uint64_t bytes = MIN(most, c->bytes - done);
		struct collective_bucket b = bucket_of(c, bytes);

		done += bytes;
		b.ready_ns = ready(c, pass, n, done);
		at = MAX(at, b.ready_ns) + takes(c, &b);
		if (bucket)
			bucket(ctx, &b);
	}
	return at;
}

uint64_t collective_overlapped(const struct collective *c,
			       const struct collective_pass *pass, size_t n)
{
	return collective_each(c, pass, n, NULL, NULL);
}
