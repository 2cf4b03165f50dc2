/* SPDX-License-Identifier: MIT */
/* The matching in general graphs against every possibility. */
#include "tests/unit/test.h"

#include <string.h>

#include "common/rng.h"
#include "common/util.h"
#include "sched/solver/matching.h"

enum { MOST = 12, LARGE = 61, ROUNDS = 3000 };

/* The most that the vertices in `left` can weigh; `memo` is by them. */
static uint64_t most(const uint32_t *weight, size_t n, uint32_t left,
		     uint64_t *memo)
{
	uint32_t a = (uint32_t)__builtin_ctz(left), rest = left & (left - 1);
	uint64_t best;

	if (memo[left] != UINT64_MAX)
		return memo[left];
	best = rest ? most(weight, n, rest, memo) : 0;
	for (uint32_t b = a + 1; b < n; b++) {
		uint32_t without = rest & ~(1u << b);

		if (rest >> b & 1 && weight[a * n + b])
			best = MAX(best, weight[a * n + b] +
						 (without ? most(weight, n,
								 without, memo)
							  : 0));
	}
	return memo[left] = best;
}

/* Of a density, from 1 to `values`: few of them make many sums equal. */
static void draw(struct rng *rng, uint32_t *weight, size_t n, uint64_t percent,
		 uint64_t values)
{
	for (size_t a = 0; a < n; a++)
		for (size_t b = a; b < n; b++)
			weight[a * n + b] = weight[b * n + a] =
				rng_below(rng, 100) < percent
					? 1 + (uint32_t)rng_below(rng, values)
					: 0;
}

static uint64_t matched(const uint32_t *weight, size_t n)
{
	uint32_t mate[LARGE];
	uint64_t sum = 0;

	assert_int_equal(matching_max(weight, n, mate), 0);
	for (size_t a = 0; a < n; a++) {
		if (mate[a] == MATCHING_NONE)
			continue;
		assert_true(mate[a] < n && mate[a] != a);
		assert_int_equal(mate[mate[a]], a);
		assert_true(weight[a * n + mate[a]] > 0);
		if (a < mate[a])
			sum += weight[a * n + mate[a]];
	}
	return sum;
}

static void a_matching_weighs_the_most(void **state)
{
	static const uint64_t values[] = { 1, 3, 20, UINT32_MAX - 1 };
	struct rng rng = rng_stream(1, "matching", 0);
	static uint64_t memo[1 << MOST];

	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		size_t n = 1 + rng_below(&rng, MOST);
		uint32_t weight[MOST * MOST];

		draw(&rng, weight, n, 10 + rng_below(&rng, 91),
		     values[rng_below(&rng, ARRAY_SIZE(values))]);
		memset(memo, 0xff, sizeof(memo));
		assert_int_equal(matched(weight, n),
				 most(weight, n, (1u << n) - 1, memo));
	}
}

/*
 * Larger graphs, with blossoms in blossoms: weights u + v make each perfect
 * matching weigh the sum of all u; one vertex of an odd number stays alone, and
 * that is the least.
 */
static void blossoms_within_blossoms(void **state)
{
	struct rng rng = rng_stream(2, "matching", 0);
	static uint32_t weight[LARGE * LARGE];

	(void)state;
	for (int round = 0; round < 100; round++) {
		uint32_t u[LARGE], least = UINT32_MAX;
		uint64_t sum = 0;

		for (size_t a = 0; a < LARGE; a++) {
			u[a] = 1 + (uint32_t)rng_below(&rng, 50);
			least = MIN(least, u[a]);
			sum += u[a];
		}
		for (size_t a = 0; a < LARGE; a++)
			for (size_t b = 0; b < LARGE; b++)
				weight[a * LARGE + b] = u[a] + u[b];
		assert_int_equal(matched(weight, LARGE), sum - least);
	}
}

/* A ring of five with a tail: only around the ring is the tail's end matched.
 */
static void an_odd_ring(void **state)
{
	static const uint32_t edges[][2] = { { 0, 1 }, { 1, 2 }, { 2, 3 },
					     { 3, 4 }, { 4, 0 }, { 2, 5 } };
	uint32_t weight[36] = { 0 }, mate[6];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(edges); i++)
		weight[edges[i][0] * 6 + edges[i][1]] =
			weight[edges[i][1] * 6 + edges[i][0]] = 7;
	assert_int_equal(matching_max(weight, 6, mate), 0);
	assert_int_equal(mate[5], 2);
	assert_int_equal(mate[0] == 1 || mate[0] == 4, 1);
	assert_int_equal(matched(weight, 6), 21);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_matching_weighs_the_most),
		cmocka_unit_test(blossoms_within_blossoms),
		cmocka_unit_test(an_odd_ring),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
