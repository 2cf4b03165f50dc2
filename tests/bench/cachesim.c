/* SPDX-License-Identifier: MIT */
/*
 * Requests per second and core of each cache policy, through the same calls
 * as gpemu-cachesim: 10 M requests over a million objects of one size at 35 %,
 * as one random pass per epoch and as independent draws from Zipf's law
 * (exponent 1). Prints a table; the requests are made beforehand.
 *
 *	bench_cachesim [POLICY...]
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/rng.h"
#include "common/tick.h"
#include "common/util.h"
#include "fs/cache/cache.h"

enum { OBJECTS = 1000000, EPOCHS = 10, REQUESTS = OBJECTS * EPOCHS };
enum { AHEAD = 16 };

struct bench {
	uint32_t *passes, *zipf;
	uint64_t *next; /* of the replayed trace */
	uint32_t *last;
};

static void fill_passes(uint32_t *v)
{
	for (uint64_t e = 0; e < EPOCHS; e++) {
		struct rng r = rng_stream(1, "order", e);

		for (uint32_t i = 0; i < OBJECTS; i++)
			v[e * OBJECTS + i] = i;
		rng_shuffle_u32(&r, v + e * OBJECTS, OBJECTS);
	}
}

/* By inversion: the harmonic sum up to k is about ln(k) + Euler's constant. */
static void fill_zipf(uint32_t *v)
{
	struct rng r = rng_stream(1, "zipf", 0);
	_cleanup_free_ uint32_t *name = malloc(OBJECTS * sizeof(*name));
	struct rng shuffle = rng_stream(1, "zipf.names", 0);

	for (uint32_t i = 0; name && i < OBJECTS; i++)
		name[i] = i;
	if (!name)
		abort();
	rng_shuffle_u32(&shuffle, name, OBJECTS);
	for (uint64_t i = 0; i < REQUESTS; i++) {
		double rank = exp(rng_double(&r) * log(OBJECTS + .5));

		v[i] = name[MIN((uint32_t)rank - 1, OBJECTS - 1)];
	}
}

static void fill_next(struct bench *b, const uint32_t *v)
{
	for (uint32_t i = 0; i < OBJECTS; i++)
		b->last[i] = UINT32_MAX;
	for (uint64_t i = REQUESTS; i-- > 0;) {
		b->next[i] = b->last[v[i]] == UINT32_MAX ? POLICY_NEVER
							 : b->last[v[i]];
		b->last[v[i]] = (uint32_t)i;
	}
}

static void replay(const struct policy_ops *ops, const struct bench *b,
		   const uint32_t *v, double *ret_rate, double *ret_hits)
{
	static const uint64_t size = 1;
	struct policy_params params = { .capacity_bytes = OBJECTS / 100 * 35,
					.seed = 1,
					.file_bytes = &size,
					.n_files = 1,
					.knows_future = true };
	struct err err = { 0 };
	struct cache_entry *e;
	struct cache *c;
	uint64_t start;

	if (cache_new(ops, &params, NULL, NULL, &c, &err) < 0)
		abort();
	start = tick_cpu_thread();
	for (size_t i = 0; i < REQUESTS; i++) {
		struct cache_object o = { .key = v[i],
					  .bytes = 1,
					  .file_bytes = 1,
					  .next_use = b->next[i] };

		if (i + AHEAD < REQUESTS)
			cache_prefetch(c, v[i + AHEAD]);
		cache_access(c, &o, &e);
	}
	*ret_rate = REQUESTS * 1e3 / (double)(tick_cpu_thread() - start);
	*ret_hits = (double)cache_counts(c)->hits / REQUESTS;
	cache_free(c);
}

static bool wanted(const char *name, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], name))
			return true;
	return argc == 1;
}

int main(int argc, char **argv)
{
	struct bench b = { .passes = malloc(REQUESTS * sizeof(uint32_t)),
			   .zipf = malloc(REQUESTS * sizeof(uint32_t)),
			   .next = malloc(REQUESTS * sizeof(uint64_t)),
			   .last = malloc(OBJECTS * sizeof(uint32_t)) };
	double rate[2], hits[2];

	if (!b.passes || !b.zipf || !b.next || !b.last)
		return 1;
	fill_passes(b.passes);
	fill_zipf(b.zipf);
	printf("%-12s %10s %8s %10s %8s\n", "policy", "passes M/s", "hits",
	       "zipf M/s", "hits");
	for (size_t p = 0; policy_table[p]; p++) {
		const struct policy_ops *ops = container_of(
			policy_table[p], const struct policy_ops, plugin);

		if (!wanted(policy_table[p]->name, argc, argv))
			continue;
		fill_next(&b, b.passes);
		replay(ops, &b, b.passes, &rate[0], &hits[0]);
		fill_next(&b, b.zipf);
		replay(ops, &b, b.zipf, &rate[1], &hits[1]);
		printf("%-12s %10.1f %8.4f %10.1f %8.4f\n",
		       policy_table[p]->name, rate[0], hits[0], rate[1],
		       hits[1]);
	}
	free(b.passes);
	free(b.zipf);
	free(b.next);
	free(b.last);
	return 0;
}
