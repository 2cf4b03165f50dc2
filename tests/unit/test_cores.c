/* SPDX-License-Identifier: MIT */
/* Virtual cores against the closed forms of k servers. */
#include "tests/unit/test.h"

#include "common/rng.h"
#include "common/util.h"
#include "emu/node/cores.h"

static struct cores *new_cores(uint32_t n)
{
	struct cores *c;

	assert_int_equal(cores_new(n, &c), 0);
	return c;
}

/* All arrive at once with equal costs: the i-th of n ends in round i / k + 1,
 * so a batch takes ceil(n / k) costs. */
static void a_batch_takes_whole_rounds(void **state)
{
	static const uint32_t k[] = { 1, 2, 3, 24, 1000, CORES_MAX };
	const uint64_t cost = 6452000, at = 777;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(k); i++) {
		struct cores *c = new_cores(k[i]);

		for (uint64_t s = 0; s < 3000; s++)
			assert_int_equal(cores_schedule(c, at, cost),
					 at + (s / k[i] + 1) * cost);
		cores_free(c);
	}
}

/* Arrivals at a fixed interval (D/D/k): up to the k cores' rate none waits;
 * above it, the i-th waits for the one k before it. */
static void steady_arrivals(void **state)
{
	enum { K = 24 };
	const uint64_t cost = 6452000, slow = cost / K + 1, fast = cost / 100;
	struct cores *c = new_cores(K), *d = new_cores(K);

	(void)state;
	for (uint64_t s = 0; s < 5000; s++) {
		uint64_t round = s / K, first = s % K * fast;

		assert_int_equal(cores_schedule(c, s * slow, cost),
				 s * slow + cost);
		assert_int_equal(cores_schedule(d, s * fast, cost),
				 first + (round + 1) * cost);
	}
	cores_free(c);
	cores_free(d);
}

/* First come, first served, with different costs: the same as a linear search
 * for the earliest free core. Work is conserved at all times. */
static void the_earliest_free_core_takes_it(void **state)
{
	enum { K = 7 };
	struct rng rng = rng_stream(3, "cores", 0);
	struct cores *c = new_cores(K);
	uint64_t from[2000], to[2000], busy[K] = { 0 }, now = 0;

	(void)state;
	for (unsigned s = 0; s < ARRAY_SIZE(from); s++) {
		uint64_t cost = rng_below(&rng, 1000), work = 0;
		unsigned best = 0;

		now += rng_below(&rng, 150);
		for (unsigned i = 1; i < K; i++)
			if (busy[i] < busy[best])
				best = i;
		from[s] = MAX(now, busy[best]);
		to[s] = busy[best] = from[s] + cost;
		assert_int_equal(cores_schedule(c, now, cost), to[s]);

		uint64_t at = now + rng_below(&rng, 3000);

		for (unsigned i = 0; i <= s; i++)
			work += MIN(to[i], at) - MIN(from[i], at);
		assert_int_equal(cores_busy_ns(c, at), work);
	}
	cores_free(c);
}

static void idle_cores_have_done_nothing(void **state)
{
	struct cores *c = new_cores(3);

	(void)state;
	assert_int_equal(cores_busy_ns(c, 1000), 0);
	assert_int_equal(cores_schedule(c, 1000, 0), 1000);
	assert_int_equal(cores_schedule(c, 1000, 500), 1500);
	assert_int_equal(cores_busy_ns(c, 1000), 0);
	assert_int_equal(cores_busy_ns(c, 1200), 200);
	assert_int_equal(cores_busy_ns(c, 9000), 500);
	cores_free(c);
}

/* Samples that wait as cores come or go end as if they had arrived then. */
static void cores_come_and_go(void **state)
{
	static const uint64_t two[] = { 100, 100 };
	static const uint64_t four[] = { 100, 100, 100, 100 };
	static const uint64_t three[] = { 100, 200, 300 };
	static const uint64_t grown[] = { 150, 150, 200, 200 };
	struct cores *c = new_cores(2);

	(void)state;
	/* 2 to 4: of six at once, four have not begun */
	for (uint64_t s = 0; s < 6; s++)
		assert_int_equal(cores_schedule(c, 0, 100), (s / 2 + 1) * 100);
	assert_int_equal(cores_resize(&c, 4, two, 2, 400), 0);
	for (size_t s = 0; s < ARRAY_SIZE(grown); s++)
		assert_int_equal(cores_schedule(c, 50, 100), grown[s]);
	assert_int_equal(cores_busy_ns(c, 50), 100);
	assert_int_equal(cores_busy_ns(c, 200), 600);
	/* 4 to 1: all that have begun end before the next begins */
	cores_free(c);
	c = new_cores(4);
	for (uint64_t s = 0; s < 6; s++)
		cores_schedule(c, 0, 100);
	assert_int_equal(cores_resize(&c, 1, four, 4, 200), 0);
	assert_int_equal(cores_schedule(c, 50, 100), 200);
	assert_int_equal(cores_schedule(c, 50, 100), 300);
	assert_int_equal(cores_busy_ns(c, 300), 600);
	/* 3 to 2: when one of three is left */
	cores_free(c);
	c = new_cores(3);
	for (uint64_t s = 0; s < 3; s++)
		assert_int_equal(cores_schedule(c, 0, three[s]), three[s]);
	assert_int_equal(cores_resize(&c, 2, three, 3, 0), 0);
	assert_int_equal(cores_schedule(c, 50, 10), 210);
	cores_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_batch_takes_whole_rounds),
		cmocka_unit_test(steady_arrivals),
		cmocka_unit_test(the_earliest_free_core_takes_it),
		cmocka_unit_test(idle_cores_have_done_nothing),
		cmocka_unit_test(cores_come_and_go),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
