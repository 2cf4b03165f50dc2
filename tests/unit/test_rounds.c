/* SPDX-License-Identifier: MIT */
/* Coordinated reads: rounds of one bucket, and what they gain. */
#include "tests/unit/test.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "common/rng.h"
#include "common/util.h"
#include "service/decide/rounds.h"

enum { MOST = 20000 };

static uint64_t length[MOST];

static struct rounds *new_rounds(const struct rounds_config *c)
{
	struct rounds *r;

	assert_int_equal(rounds_new(c, &r), 0);
	return r;
}

static void a_sample_goes_to_the_bucket_of_its_length(void **state)
{
	const uint64_t boundary[] = { 10, 20, 40 };
	struct rounds_config c = { .boundary = boundary,
				   .n_boundaries = 3,
				   .batch = 2,
				   .consumers = 2 };
	struct rounds *r = new_rounds(&c);
	uint64_t sample[4];
	void *got[4];

	(void)state;
	assert_int_equal(rounds_add(r, 0, sample), 0);
	assert_int_equal(rounds_add(r, 9, sample), 0);
	assert_int_equal(rounds_add(r, 10, sample), 1);
	assert_int_equal(rounds_add(r, 39, sample), 2);
	assert_int_equal(rounds_add(r, 40, sample), 3);
	assert_int_equal(rounds_add(r, UINT64_MAX, sample), 3);
	assert_int_equal(rounds_take(r, 0, got), 0);
	/* those of a consumer are together */
	rounds_add(r, 5, &sample[1]);
	rounds_add(r, 6, &sample[2]);
	assert_int_equal(rounds_take(r, 0, got), 4);
	assert_ptr_equal(got[2], &sample[1]);
	assert_ptr_equal(got[3], &sample[2]);
	assert_int_equal(rounds_take(r, 0, got), 0);
	rounds_free(r);
	c.boundary = (const uint64_t[]){ 10, 10, 20 };
	assert_int_equal(rounds_new(&c, &r), -EINVAL);
	c = (struct rounds_config){ .batch = 0, .consumers = 1 };
	assert_int_equal(rounds_new(&c, &r), -EINVAL);
}

/* No sample twice, all of a round from one bucket, and the last ones stay. */
static void rounds_are_of_one_bucket(void **state)
{
	struct rng rng = rng_stream(1, "rounds", 0);

	(void)state;
	for (int i = 0; i < 50; i++) {
		uint64_t boundary[6], at = 0;
		struct rounds_config c = {
			.boundary = boundary,
			.n_boundaries = (uint32_t)rng_below(&rng, 7),
			.batch = 1 + (uint32_t)rng_below(&rng, 4),
			.consumers = 1 + (uint32_t)rng_below(&rng, 5),
		};
		bool seen[MOST] = { false };
		void *got[7 * 4 * 5];
		struct rounds *r;
		uint32_t n, total = 0;

		for (uint32_t k = 0; k < c.n_boundaries; k++)
			boundary[k] = at += 1 + rng_below(&rng, 100);
		r = new_rounds(&c);
		for (uint32_t k = 0; k < 1000; k++) {
			uint32_t b;

			length[k] = rng_below(&rng, 400);
			b = rounds_add(r, length[k], &length[k]);
			n = rounds_take(r, b, got);
			assert_true(n == 0 || n == c.batch * c.consumers);
			for (uint32_t j = 0; j < n; j++) {
				uint64_t l = *(uint64_t *)got[j];

				assert_true(b == c.n_boundaries ||
					    l < boundary[b]);
				assert_true(b == 0 || l >= boundary[b - 1]);
				assert_false(seen[(uint64_t *)got[j] - length]);
				seen[(uint64_t *)got[j] - length] = true;
			}
			total += n;
		}
		assert_in_range(1000 - total, 0,
				(c.n_boundaries + 1) *
					(c.batch * c.consumers - 1));
		rounds_free(r);
	}
}

static void a_round_waits_for_all_consumers(void **state)
{
	struct rounds_gate g = { .consumers = 3, .workers = 4, .round = 2 };
	struct rounds_gate most = { .consumers = 64, .workers = 1 };

	(void)state;
	assert_int_equal(rounds_request(&g, 0, 2), 0);
	assert_int_equal(rounds_request(&g, 2, 2), 0);
	assert_int_equal(rounds_request(&g, 2, 2), 0);
	assert_int_equal(rounds_request(&g, 3, 2), -EINVAL);
	assert_int_equal(rounds_request(&g, 1, 6), -EINVAL);
	assert_int_equal(rounds_request(&g, 1, 2), 1);
	assert_int_equal(rounds_request(&g, 1, 2), -EINVAL);
	assert_int_equal(rounds_request(&g, 1, 6), 0);
	for (uint32_t i = 0; i < 63; i++)
		assert_int_equal(rounds_request(&most, i, 0), 0);
	assert_int_equal(rounds_request(&most, 63, 0), 1);
}

static void check_close(double got, double want, double tolerance)
{
	if (fabs(got / want - 1) > tolerance)
		fail_msg("%g is not %g", got, want);
}

/*
 * E[max of m] / E of values drawn from the n given ones, which are sorted
 * ascending and positive, n and m >= 1:
 *
 *	E[max] = sum of x_i * ((i / n)^m - ((i - 1) / n)^m), i = 1 .. n
 */
static double gain_of(const double *sorted, size_t n, uint32_t m)
{
	double max = 0, sum = 0, below = 0;

	for (size_t i = 0; i < n; i++) {
		double to = pow((double)(i + 1) / (double)n, m);

		max += sorted[i] * (to - below);
		sum += sorted[i];
		below = to;
	}
	return max / (sum / (double)n);
}

/* Of a uniform distribution over 0..1 the maximum of m is m / (m + 1) on
 * average, so the gain is 2 m / (m + 1); of an exponential one the harmonic
 * number of m. */
static void the_gain_has_closed_forms(void **state)
{
	static double uniform[MOST], exponential[MOST];
	const double one[] = { 7, 7, 7 };
	double harmonic = 0;

	(void)state;
	for (int i = 0; i < MOST; i++) {
		double q = (i + .5) / MOST;

		uniform[i] = q;
		exponential[i] = -log1p(-q);
	}
	for (uint32_t m = 1; m <= 16; m++) {
		harmonic += 1. / m;
		check_close(gain_of(uniform, MOST, m), 2. * m / (m + 1), 1e-3);
		check_close(gain_of(exponential, MOST, m), harmonic, 3e-3);
		/* negative control: all lengths are equal */
		check_close(gain_of(one, 3, m), 1, 1e-12);
	}
	/* one or two of 1 and 3 */
	check_close(gain_of((const double[]){ 1, 3 }, 2, 2), 2.5 / 2, 1e-12);
}

/* The mean time of a step of `m` consumers, each with one sample of the order;
 * it is as long as the longest. */
static double mean_step(uint64_t *const *sample, uint32_t n, uint32_t m)
{
	double sum = 0;

	for (uint32_t i = 0; i + m <= n; i += m) {
		uint64_t most = 0;

		for (uint32_t k = 0; k < m; k++)
			most = MAX(most, *sample[i + k]);
		sum += (double)most;
	}
	return sum / (n / m);
}

/* Training on random lengths, in the order of arrival and in rounds of 20
 * buckets: the speed-up is the closed form. */
static void a_simulated_training_gains_it(void **state)
{
	static uint64_t *arrival[MOST], *rounds[MOST];
	static double sorted[MOST];
	static uint64_t copy[MOST];
	uint64_t boundary[19];
	struct rng rng = rng_stream(2, "rounds", 0);

	(void)state;
	for (int i = 0; i < MOST; i++) {
		length[i] = 16 + (uint64_t)rng_gamma(&rng, 2, 100);
		arrival[i] = &length[i];
		copy[i] = length[i];
	}
	qsort(copy, MOST, sizeof(*copy), util_compare_u64);
	for (int i = 0; i < MOST; i++)
		sorted[i] = (double)copy[i];
	for (int i = 0; i < 19; i++)
		boundary[i] = copy[(i + 1) * (MOST / 20)];
	for (uint32_t m = 2; m <= 8; m *= 2) {
		struct rounds_config c = { .boundary = boundary,
					   .n_boundaries = 19,
					   .batch = 1,
					   .consumers = m };
		struct rounds *r = new_rounds(&c);
		uint32_t n = 0;

		for (int i = 0; i < MOST; i++) {
			uint32_t b = rounds_add(r, length[i], arrival[i]);

			n += rounds_take(r, b, (void **)(rounds + n));
		}
		check_close(mean_step(arrival, MOST, m) /
				    mean_step(rounds, n, m),
			    gain_of(sorted, MOST, m), .1);
		rounds_free(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sample_goes_to_the_bucket_of_its_length),
		cmocka_unit_test(rounds_are_of_one_bucket),
		cmocka_unit_test(a_round_waits_for_all_consumers),
		cmocka_unit_test(the_gain_has_closed_forms),
		cmocka_unit_test(a_simulated_training_gains_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
