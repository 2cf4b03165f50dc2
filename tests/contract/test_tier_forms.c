/* SPDX-License-Identifier: MIT */
/*
 * Hit ratios of two tiers with files of equal size and one random pass per
 * epoch, where there is a closed form (docs/reproductions/tiers.md derives
 * them). c1 and c2 are the cached shares of the tiers, f(c) is the hit ratio
 * of a policy alone.
 *
 *	MinIO over X	 tier 1	 c1
 *			 tier 2	 (1 - c1) f(c2 / (1 - c1))
 *	X over MinIO	 tier 1	 f(c1)
 *			 tier 2	 c2 (1 - f(c1))
 *	MinIO over MinIO tier 2	 c2 - c1, where every tier admits; where the
 *				 first admits alone, c2
 */
#include "tests/unit/test.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cachesim/cachesim.h"
#include "common/rng.h"
#include "common/util.h"

/* The second epoch is not in steady state: MinIO holds the first files of the
 * epoch before. */
enum { N = 10000, EPOCHS = 6, WARMUP = 2, BYTES = 1000 };

static struct sim_trace trace;

static int setup(void **state)
{
	struct rng r = rng_stream(5, "order", 0);
	static uint32_t order[N];

	(void)state;
	trace.file_bytes = calloc(N, sizeof(*trace.file_bytes));
	assert_non_null(trace.file_bytes);
	trace.n_files = N;
	trace.total_bytes = (uint64_t)N * BYTES;
	for (uint32_t i = 0; i < N; i++) {
		struct cache_object o = { .key = i,
					  .bytes = BYTES,
					  .file_bytes = BYTES };

		order[i] = i;
		trace.file_bytes[i] = BYTES;
		assert_int_equal(sim_trace_add_object(&trace, &o), 0);
	}
	for (int e = 0; e < EPOCHS; e++) {
		rng_shuffle_u32(&r, order, N);
		for (uint32_t i = 0; i < N; i++)
			assert_int_equal(
				sim_trace_add_request(&trace, order[i]), 0);
		assert_int_equal(sim_trace_end_epoch(&trace), 0);
	}
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	sim_trace_fini(&trace);
	return 0;
}

static struct sim_tier tier(const char *policy, double share)
{
	const struct plugin *p =
		plugin_find(policy_table, "cache policy", policy, NULL);

	assert_non_null(p);
	return (struct sim_tier){
		.ops = container_of(p, const struct policy_ops, plugin),
		.policy = policy,
		.capacity_bytes = (uint64_t)llround(share * N) * BYTES,
	};
}

/* The shares of all requests that hit in each of the two. */
static void replay(const char *above, double c1, const char *below, double c2,
		   enum tier_admit admit, double ret[2])
{
	struct sim_run run = { .trace = &trace,
			       .n_cells = 1,
			       .cells = calloc(1, sizeof(*run.cells)),
			       .warmup = WARMUP,
			       .admit = admit };
	struct sim_cell *c = run.cells;
	struct err err = { 0 };
	uint64_t asked[2];

	assert_non_null(c);
	c->tiers[0] = tier(above, c1);
	c->tiers[1] = tier(below, c2);
	c->n_tiers = 2;
	assert_int_equal(sim_replay(&run, 1, &err), 0);
	for (int k = 0; k < 2; k++) {
		struct cache_counts n =
			sim_tier_sum(&c->tiers[k], WARMUP, EPOCHS);

		ret[k] = (double)n.hits / N / (EPOCHS - WARMUP);
		asked[k] = n.hits + n.misses;
	}
	/* the tier below sees the misses of the tier above */
	assert_int_equal(asked[0], N * (EPOCHS - WARMUP));
	assert_int_equal(asked[1],
			 asked[0] -
				 (uint64_t)llround(ret[0] * (double)asked[0]));
	sim_run_fini(&run);
}

static double alone(const char *policy, double c)
{
	double e = M_E;

	c = fmin(c, 1);
	if (policy[0] == 'l') /* lru */
		return c < 1 ? c + (1 - c) * log(1 - c) : 1;
	if (policy[0] == 'f') /* fifo */
		return c <= 1 - 1 / e ? -c - log(1 - c) : 1 - (1 - c) * (e - 1);
	return 1 - c * log(c + (1 - c) * exp(1 / c)); /* random */
}

static void expect(const char *above, double c1, const char *below, double c2,
		   enum tier_admit admit, double h1, double h2)
{
	double h[2];

	replay(above, c1, below, c2, admit, h);
	if (fabs(h[0] - h1) > .01 || fabs(h[1] - h2) > .01)
		fail_msg("%s %g over %s %g: %.4f and %.4f, not %.4f and %.4f",
			 above, c1, below, c2, h[0], h[1], h1, h2);
}

static const char *const others[] = { "lru", "fifo", "random" };
static const double shares[][2] = {
	{ .1, .5 }, { .3, .3 }, { .4, .1 }, { .2, .79 }
};

static void minio_over_others(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(shares); i++) {
		double c1 = shares[i][0], c2 = shares[i][1];

		for (size_t p = 0; p < ARRAY_SIZE(others); p++) {
			double h2 = (1 - c1) * alone(others[p], c2 / (1 - c1));

			/* random takes long to evict the files of MinIO */
			if (strcmp(others[p], "random"))
				expect("minio", c1, others[p], c2,
				       TIER_ADMIT_EVERY, c1, h2);
			expect("minio", c1, others[p], c2, TIER_ADMIT_FIRST, c1,
			       h2);
		}
	}
}

static void others_over_minio(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(shares); i++) {
		double c1 = shares[i][0], c2 = shares[i][1];

		for (size_t p = 0; p < ARRAY_SIZE(others); p++) {
			double h1 = alone(others[p], c1);

			expect(others[p], c1, "minio", c2, TIER_ADMIT_EVERY, h1,
			       c2 * (1 - h1));
			/* the tier above admits every miss */
			expect(others[p], c1, "minio", c2, TIER_ADMIT_FIRST, h1,
			       0);
		}
	}
}

static void minio_over_minio(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(shares); i++) {
		double c1 = shares[i][0], c2 = shares[i][1];

		expect("minio", c1, "minio", c2, TIER_ADMIT_EVERY, c1,
		       fmax(c2 - c1, 0));
		expect("minio", c1, "minio", c2, TIER_ADMIT_FIRST, c1, c2);
	}
}

/* A tier that admits nothing does not change the other. */
static void a_tier_that_admits_nothing_has_no_effect(void **state)
{
	(void)state;
	for (size_t p = 0; p < ARRAY_SIZE(others); p++) {
		expect("none", 0, others[p], .35, TIER_ADMIT_EVERY, 0,
		       alone(others[p], .35));
		expect(others[p], .35, "none", 0, TIER_ADMIT_FIRST,
		       alone(others[p], .35), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(minio_over_others),
		cmocka_unit_test(others_over_minio),
		cmocka_unit_test(minio_over_minio),
		cmocka_unit_test(a_tier_that_admits_nothing_has_no_effect),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
