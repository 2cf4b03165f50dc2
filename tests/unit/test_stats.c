/* SPDX-License-Identifier: MIT */
#include "tests/unit/test.h"

#include <math.h>

#include "common/rng.h"
#include "workloads/run_stats.h"

static void assert_near(double a, double b, double slack)
{
	if (!(fabs(a - b) <= slack))
		fail_msg("%.9g is not %.9g +- %.3g", a, b, slack);
}

static void spread_has_quartiles(void **state)
{
	double v[] = { 4, 1, 3, 2 };
	struct spread s = stats_spread(v, 4);

	(void)state;
	assert_int_equal(s.n, 4);
	assert_true(s.min == 1 && s.max == 4 && s.median == 2.5);
	assert_true(s.q1 == 1.75 && s.q3 == 3.25);
	s = stats_spread(v, 1);
	assert_true(s.min == 1 && s.q3 == 1 && s.median == 1);
	assert_true(s.ci_low == 1 && s.ci_high == 1 && s.ci_level == 0);
	assert_int_equal(stats_spread(v, 0).n, 0);
	assert_true(isnan(stats_spread(v, 0).ci_low));
}

/* Levels: 1 - 2 P(Bin(n, 1/2) < k), as in the tables of order statistics. */
static void the_interval_has_its_level(void **state)
{
	static const struct {
		size_t n;
		double low, high, level;
	} cases[] = {
		{ 2, 1, 2, .5 },	  { 3, 1, 3, .75 },
		{ 5, 1, 5, .9375 },	  { 6, 1, 6, .96875 },
		{ 8, 1, 8, .9921875 },	  { 9, 2, 8, .9609375 },
		{ 10, 2, 9, .978515625 }, { 20, 6, 15, .958610535 },
	};
	double v[20];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		size_t n = cases[i].n;

		for (size_t k = 0; k < n; k++)
			v[k] = (double)(n - k);
		struct spread s = stats_spread(v, n);

		assert_near(s.ci_low, cases[i].low, 0);
		assert_near(s.ci_high, cases[i].high, 0);
		assert_near(s.ci_level, cases[i].level, 1e-9);
	}
}

/* How often does it hold the true median, of a distribution with a tail? */
static void the_interval_covers(void **state)
{
	struct rng rng = rng_stream(3, "test", 0);
	size_t held = 0, runs = 4000;
	double v[9];

	(void)state;
	for (size_t i = 0; i < runs; i++) {
		for (size_t k = 0; k < 9; k++)
			v[k] = -log(1 - rng_double(&rng));
		struct spread s = stats_spread(v, 9);

		held += s.ci_low <= M_LN2 && M_LN2 <= s.ci_high;
	}
	/* four standard deviations of a binomial of 4000 */
	assert_near((double)held / (double)runs, .9609375, .0123);
}

static void mann_whitney(void **state)
{
	static const double low[] = { 1, 2, 3, 4, 5 };
	static const double high[] = { 6, 7, 8, 9, 10 };
	static const double mixed[] = { 1.5, 2.5, 3.5, 4.5, 5.5 };
	static const double tied[] = { 3, 3, 3, 3, 3 };
	double many_a[40], many_b[40];

	(void)state;
	/* 2 of the C(10, 5) = 252 orders, 2 of C(6, 3) = 20 */
	assert_near(stats_mann_whitney(low, 5, high, 5), 2. / 252, 1e-12);
	assert_near(stats_mann_whitney(high, 5, low, 5), 2. / 252, 1e-12);
	assert_near(stats_mann_whitney(low, 3, high, 3), .1, 1e-12);
	/* U = 10 of 25: R's wilcox.test gives 0.6904762 */
	assert_near(stats_mann_whitney(low, 5, mixed, 5), .6904762, 1e-6);
	/* no difference at all, and nothing to compare */
	assert_near(stats_mann_whitney(tied, 5, tied, 5), 1, 1e-12);
	assert_true(isnan(stats_mann_whitney(low, 5, high, 0)));
	/* ties at one end: {1 1 2} against {2 3 3}: 2 of 20 as extreme or
	 * more by the sum of mid-ranks 8 - 6.5: counted by hand, 4 of 20 */
	assert_near(stats_mann_whitney((double[]){ 1, 1, 2 }, 3,
				       (double[]){ 2, 3, 3 }, 3),
		    .2, 1e-12);
	/* beyond the exact range, normal: of 1600 pairs 1104 are a < b, the
	 * standard deviation is sqrt(1600 * 81 / 12) */
	for (size_t i = 0; i < 40; i++) {
		many_a[i] = (double)i;
		many_b[i] = (double)i + 8.5;
	}
	assert_near(stats_mann_whitney(many_a, 40, many_b, 40),
		    erfc(303.5 / sqrt(1600 * 81 / 12.) / M_SQRT2), 1e-9);
}

static void ratio_interval(void **state)
{
	double a[] = { 10, 10.1, 9.9, 10.05, 9.95 };
	double b[] = { 20, 20.1, 19.9, 20.05, 19.95 };
	double low, high, again;

	(void)state;
	stats_ratio_interval(a, 5, b, 5, 1, &low, &high);
	assert_true(low > 1.95 && low < 2 && high > 2 && high < 2.05);
	stats_ratio_interval(a, 5, b, 5, 1, &again, &high);
	assert_true(again == low);
	stats_ratio_interval(a, 1, b, 5, 1, &low, &high);
	assert_true(isnan(low) && isnan(high));
	a[0] = a[1] = a[2] = 0;
	stats_ratio_interval(a, 5, b, 5, 1, &low, &high);
	assert_true(isnan(low));
}

static void holm(void **state)
{
	double p[] = { .04, NAN, .01, .03, .5 };

	(void)state;
	stats_holm(p, 5);
	assert_near(p[2], .04, 1e-12);
	assert_near(p[3], .09, 1e-12);
	assert_near(p[0], .09, 1e-12); /* not below the one before it */
	assert_near(p[4], .5, 1e-12);
	assert_true(isnan(p[1]));
}

static void spearman(void **state)
{
	static const double a[] = { 1, 2, 3, 4, 5 };
	static const double up[] = { 1, 10, 20, 500, 501 };
	static const double swap[] = { 2, 1, 3, 4, 5 };
	static const double flat[] = { 7, 7, 7, 7, 7 };

	(void)state;
	assert_near(stats_spearman(a, up, 5), 1, 1e-12);
	/* 1 - 6 sum d^2 / (n (n^2 - 1)) */
	assert_near(stats_spearman(a, swap, 5), 1 - 12. / 120, 1e-12);
	assert_true(isnan(stats_spearman(a, flat, 5)));
	assert_true(isnan(stats_spearman(a, up, 1)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(spread_has_quartiles),
		cmocka_unit_test(the_interval_has_its_level),
		cmocka_unit_test(the_interval_covers),
		cmocka_unit_test(mann_whitney),
		cmocka_unit_test(ratio_interval),
		cmocka_unit_test(holm),
		cmocka_unit_test(spearman),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
