/* SPDX-License-Identifier: MIT */
#include "tests/unit/test.h"

#include <math.h>
#include <string.h>

#include "common/rng.h"

enum { N = 200000 };

static void same_name_same_numbers(void **state)
{
	struct rng a = rng_stream(7, "fs.read", 0), b = a;
	struct rng c = rng_stream(7, "fs.open", 0);
	struct rng d = rng_stream(7, "fs.read", 1);
	uint64_t first = rng_u64(&a);

	(void)state;
	assert_true(first == rng_u64(&b));
	assert_true(first != rng_u64(&c));
	assert_true(first != rng_u64(&d));
}

static void known_first_value(void **state)
{
	/* a change here changes every published run */
	struct rng r = rng_stream(1, "check", 0);

	(void)state;
	assert_int_equal(rng_u64(&r), 0xd8cffa11ba6c7f76);
}

static void below_is_uniform(void **state)
{
	struct rng r = rng_stream(1, "below", 0);
	unsigned seen[7] = { 0 };

	(void)state;
	for (int i = 0; i < N; i++)
		seen[rng_below(&r, 7)]++;
	for (int i = 0; i < 7; i++)
		assert_true(fabs(seen[i] - N / 7.0) < 5 * sqrt(N / 7.0));
}

static void moments(double (*draw)(struct rng *), double mean, double var)
{
	struct rng r = rng_stream(1, "moments", 0);
	double s = 0, s2 = 0;

	for (int i = 0; i < N; i++) {
		double x = draw(&r);

		s += x;
		s2 += x * x;
	}
	s /= N;
	s2 = s2 / N - s * s;
	assert_true(fabs(s - mean) < 5 * sqrt(var / N));
	assert_true(fabs(s2 - var) < .05 * var);
}

static double gamma_half(struct rng *r)
{
	return rng_gamma(r, .5, 2);
}

static double gamma_three(struct rng *r)
{
	return rng_gamma(r, 3, 2);
}

static void distributions_have_their_moments(void **state)
{
	(void)state;
	moments(rng_double, .5, 1 / 12.0);
	moments(rng_normal, 0, 1);
	moments(gamma_half, 1, 2);
	moments(gamma_three, 6, 12);
}

static void shuffle_is_a_permutation(void **state)
{
	struct rng r = rng_stream(1, "shuffle", 0);
	uint32_t v[1000];
	unsigned char seen[1000] = { 0 };
	size_t fixed = 0;

	(void)state;
	for (uint32_t i = 0; i < 1000; i++)
		v[i] = i;
	rng_shuffle_u32(&r, v, 1000);
	for (uint32_t i = 0; i < 1000; i++) {
		assert_false(seen[v[i]]++);
		fixed += v[i] == i;
	}
	assert_true(fixed < 10);
}

static void any_part_of_an_endless_stream_is_the_same(void **state)
{
	uint64_t key = rng_key(7, "at", 3), ones = 0;
	unsigned char whole[4099], part[64];
	struct rng r = rng_stream(1, "parts", 0);

	(void)state;
	rng_bytes_at(key, 0, whole, sizeof(whole));
	for (int i = 0; i < 2000; i++) {
		size_t n = rng_below(&r, sizeof(part) + 1);
		size_t at = rng_below(&r, sizeof(whole) - n + 1);

		rng_bytes_at(key, at, part, n);
		assert_memory_equal(part, whole + at, n);
	}
	/* far out, where an offset in bytes needs more than 32 bits */
	rng_bytes_at(key, (1ull << 44) + 5, part, 8);
	rng_bytes_at(key, (1ull << 44) + 8, part + 8, 8);
	assert_memory_equal(part + 3, part + 8, 5);
	for (size_t i = 0; i < sizeof(whole); i++)
		ones += (unsigned)__builtin_popcount(whole[i]);
	/* 32,792 fair bits: half of them within four deviations of 90 */
	assert_in_range(ones, 16396 - 362, 16396 + 362);
	assert_true(rng_key(7, "at", 3) != rng_key(7, "at", 4));
	assert_true(rng_key(7, "at", 3) != rng_key(8, "at", 3));
	assert_true(rng_key(7, "at", 3) != rng_key(7, "of", 3));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_name_same_numbers),
		cmocka_unit_test(known_first_value),
		cmocka_unit_test(below_is_uniform),
		cmocka_unit_test(distributions_have_their_moments),
		cmocka_unit_test(shuffle_is_a_permutation),
		cmocka_unit_test(any_part_of_an_endless_stream_is_the_same),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
