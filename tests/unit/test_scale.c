/* SPDX-License-Identifier: MIT */
/* The number of workers: the published formula, and the loop that follows it
 * with a fleet of workers. */
#include "tests/unit/test.h"

#include <errno.h>
#include <math.h>

#include "common/rng.h"
#include "common/util.h"
#include "service/decide/scale.h"

static uint64_t estimate(const uint64_t *p, size_t n_p, const uint64_t *t,
			 size_t n_t)
{
	uint64_t n = 0;

	assert_int_equal(scale_estimate(p, n_p, t, n_t, &n), 0);
	return n;
}

static void workers_are_demand_over_the_mean_rate(void **state)
{
	const uint64_t p[] = { 200, 200, 200 }, t[] = { 50, 100 };
	const uint64_t slow[] = { 1000000 }, fast[] = { 1 };
	uint64_t n;

	(void)state;
	/* 1/50 + 1/100 = 0.03 of 0.005 each */
	assert_int_equal(estimate(p, 3, t, 2), 6);
	/* rounded up */
	assert_int_equal(estimate(p, 1, (uint64_t[]){ 99 }, 1), 3);
	/* one at least, and never more than the limit */
	assert_int_equal(estimate(fast, 1, slow, 1), 1);
	assert_int_equal(estimate(slow, 1, fast, 1), SCALE_MOST);
	assert_int_equal(scale_estimate(p, 0, t, 2, &n), -EAGAIN);
	assert_int_equal(scale_estimate(p, 3, t, 0, &n), -EAGAIN);
	assert_int_equal(scale_estimate((uint64_t[]){ 0 }, 1, t, 2, &n),
			 -EINVAL);
	assert_int_equal(scale_estimate(p, 3, (uint64_t[]){ 50, 0 }, 2, &n),
			 -EINVAL);
}

static void the_median_replaces_outliers(void **state)
{
	/* rates 1/100 four times and 1: mean 0.208, deviation 0.443, so the
	 * last is out and counts as 1/100 */
	const uint64_t p[] = { 100, 100, 1, 100, 100 }, t[] = { 20 };
	/* of two values neither is out: rates 1/100 and 1/300 */
	const uint64_t two[] = { 100, 300 };
	/* a consumer that reports nonsense */
	const uint64_t mad[] = { 50, 50, 50, 1 };

	(void)state;
	assert_int_equal(estimate(p, 5, t, 1), 5);
	assert_int_equal(estimate(two, 2, t, 1), 8); /* 0.05 / 0.00667 */
	assert_int_equal(estimate((uint64_t[]){ 100 }, 1, mad, 4), 8);
}

static void growth_is_limited(void **state)
{
	(void)state;
	assert_int_equal(scale_next(1, 100), 4);
	assert_int_equal(scale_next(4, 100), 16);
	assert_int_equal(scale_next(16, 20), 20);
	assert_int_equal(scale_next(300, 5000), 800);
	assert_int_equal(scale_next(100000, UINT64_MAX), SCALE_MOST);
	assert_int_equal(scale_next(99900, UINT64_MAX), SCALE_MOST);
	/* down at once */
	assert_int_equal(scale_next(300, 7), 7);
}

enum { FLEET = 400 };

/* A fleet: the true time of each worker, and of the GPU of each consumer. */
struct fleet {
	uint64_t worker[FLEET], consumer[8];
	size_t n_consumers;
};

static uint64_t about(struct rng *rng, uint64_t ns, double spread)
{
	double f = 1 + spread * (2 * rng_double(rng) - 1);

	return (uint64_t)((double)ns * f);
}

static double demand(const struct fleet *f)
{
	double sum = 0;

	for (size_t i = 0; i < f->n_consumers; i++)
		sum += 1 / (double)f->consumer[i];
	return sum;
}

static double supply(const struct fleet *f, uint64_t n)
{
	double sum = 0;

	for (uint64_t i = 0; i < n; i++)
		sum += 1 / (double)f->worker[i];
	return sum;
}

/* The formula, by what is true of the first n. The reports of some hundred
 * workers may be off by more than one worker. */
static uint64_t wanted(const struct fleet *f, uint64_t n)
{
	double workers = demand(f) / (supply(f, n) / (double)n);

	return (uint64_t)(ceil(workers) + floor(workers / 100));
}

/* One round of reports, each off by up to 1 %, and sometimes one of nonsense.
 */
static uint64_t round_of(const struct fleet *f, uint64_t n, struct rng *rng)
{
	uint64_t p[FLEET], t[8];

	for (uint64_t i = 0; i < n; i++)
		p[i] = about(rng, f->worker[i], .01);
	for (size_t i = 0; i < f->n_consumers; i++)
		t[i] = about(rng, f->consumer[i], .01);
	if (n >= 8 && rng_below(rng, 2))
		p[rng_below(rng, n)] *= 50;
	return MIN(scale_next(n, estimate(p, n, t, f->n_consumers)), FLEET);
}

/* From any number of workers the loop ends where the GPUs have .95 of their
 * rate, with at most one worker more than the formula says. */
static void the_loop_settles(void **state)
{
	struct rng rng = rng_stream(1, "scale", 0);

	(void)state;
	for (int i = 0; i < 300; i++) {
		struct fleet f = { .n_consumers = 1 + rng_below(&rng, 8) };
		uint64_t per = 1000000, n;

		for (size_t k = 0; k < FLEET; k++)
			f.worker[k] = about(&rng, per, .04);
		for (size_t k = 0; k < f.n_consumers; k++)
			f.consumer[k] = about(&rng, per / 20, .01);
		n = 1 + rng_below(&rng, FLEET / 2);
		for (int k = 0; k < 8; k++)
			n = round_of(&f, n, &rng);
		/* it stays there */
		for (int k = 0; k < 8; k++) {
			n = round_of(&f, n, &rng);
			assert_true(supply(&f, n) >= .95 * demand(&f));
			assert_true(n <= wanted(&f, n) + 1);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(workers_are_demand_over_the_mean_rate),
		cmocka_unit_test(the_median_replaces_outliers),
		cmocka_unit_test(growth_is_limited),
		cmocka_unit_test(the_loop_settles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
