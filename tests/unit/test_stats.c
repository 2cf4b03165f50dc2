/* SPDX-License-Identifier: MIT */
#include "tests/unit/test.h"

#include <math.h>
#include <string.h>

#include "common/rng.h"
#include "runner/spec/run_stats.h"

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

/* As in the tables of Student's distribution, and by its closed forms. */
static void students_t(void **state)
{
	static const struct {
		double df, p, t;
	} cases[] = {
		{ 1, .05, 12.7062047 },	  { 2, .05, 4.30265273 },
		{ 4, .05, 2.77644511 },	  { 10, .01, 3.16927267 },
		{ 30, .05, 2.04227246 },  { 1000, .05, 1.96233908 },
		{ 2.5, .05, 3.57465484 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_near(stats_t_quantile(cases[i].p, cases[i].df),
			    cases[i].t, 1e-4);
		assert_near(stats_t_p(cases[i].t, cases[i].df), cases[i].p,
			    1e-5);
	}
	for (double t = .01; t < 1e6; t *= 3) {
		assert_near(stats_t_p(t, 1), 1 - 2 / M_PI * atan(t), 1e-12);
		assert_near(stats_t_p(-t, 2), 1 - t / sqrt(2 + t * t), 1e-12);
	}
	assert_near(stats_t_p(0, 3), 1, 0);
}

static struct run_change of(const double *a, size_t n_a, const double *b,
			    size_t n_b, bool paired)
{
	double x[40], y[40];

	memcpy(x, a, n_a * sizeof(*a));
	memcpy(y, b, n_b * sizeof(*b));
	return stats_change(x, n_a, y, n_b, paired);
}

static void changes(void **state)
{
	static const double a[] = { 10, 11, 12 }, b[] = { 98, 108, 118 };
	static const double zero[] = { 0, 1, 2 }, flat[] = { 7, 7, 7 };
	static const double thirds[] = { .1 + .2, .3, .3 };
	static const double tenths[] = { .3, .3, .1 + .2 };
	struct run_change c = of(a, 3, b, 3, true);

	(void)state;
	/* three runs each separate a factor of 9.8 from chance */
	assert_true(c.ratio && c.p < .001);
	assert_near(c.value, 9.8, .05);
	assert_true(c.low < 9.8 && 9.8 < c.high && c.high < 10);
	/* an interval without 1 means p < 0.05 */
	c = of(a, 3, b, 3, false);
	assert_near(stats_t_p(log(c.value) / c.error, c.df), c.p, 1e-12);
	assert_near(c.value / c.low, stats_detectable(&c, .05), 1e-9);
	assert_true(stats_detectable(&c, .01) > stats_detectable(&c, .05));
	/* Welch's degrees of freedom, from the six logarithms by hand */
	assert_near(c.df, 3.99864, 1e-5);
	/* differences where there is no logarithm */
	c = of(zero, 3, a, 3, true);
	assert_false(c.ratio);
	assert_true(c.value == 10 && c.p < 1e-9 && c.low > 9.99);
	/* constant values, and rounding */
	c = of(flat, 3, flat, 3, true);
	assert_true(c.p == 1 && c.value == 1);
	assert_true(of(flat, 3, a, 3, false).df > 1.99);
	assert_true(of(thirds, 3, tenths, 3, true).p > .9);
	assert_true(of(flat, 3, zero + 1, 1, false).ratio);
	c = of(flat, 3, a, 1, false);
	assert_near(c.value, 10. / 7, 1e-12);
	assert_true(isnan(c.p) && isnan(c.low) &&
		    isnan(stats_detectable(&c, .05)));
	assert_true(isnan(of(flat, 0, a, 3, false).value));
}

/* Times around 1: with a normal or a skewed logarithm, or with an occasional
 * disturbed run. */
static double noisy(struct rng *rng, int kind)
{
	double u = 1 - rng_double(rng), v = rng_double(rng);

	switch (kind) {
	case 0: return exp(.1 * sqrt(-2 * log(u)) * cos(2 * M_PI * v));
	case 1: return -log(u);
	case 2: return 1 + .05 * v;
	default: return 1 + .02 * v + (u < .1 ? 1 : 0);
	}
}

/* How often does the interval hold the true ratio, 1.7? */
static double coverage(int kind, size_t n_a, size_t n_b, bool paired)
{
	struct rng rng = rng_stream(5, "test", (uint64_t)kind);
	double a[40], b[40];
	size_t held = 0, runs = 4000;

	for (size_t i = 0; i < runs; i++) {
		for (size_t k = 0; k < n_a; k++)
			a[k] = noisy(&rng, kind);
		for (size_t k = 0; k < n_b; k++)
			b[k] = 1.7 * noisy(&rng, kind);
		struct run_change c = stats_change(a, n_a, b, n_b, paired);

		held += c.low <= 1.7 && 1.7 <= c.high;
	}
	return (double)held / (double)runs;
}

static void the_interval_of_a_change_covers(void **state)
{
	/* four standard deviations of a binomial of 4000 */
	const double four = .0138;

	(void)state;
	for (size_t n = 2; n <= 20; n = n * 2 - n / 3) {
		/* exact: neither more nor less */
		assert_near(coverage(0, n, n, true), .95, four);
		for (int kind = 0; kind < 4; kind++) {
			if (coverage(kind, n, n, true) < .95 - four ||
			    coverage(kind, n, n, false) < .95 - four)
				fail_msg("%zu of kind %d: %.4f paired, %.4f", n,
					 kind, coverage(kind, n, n, true),
					 coverage(kind, n, n, false));
		}
	}
	assert_true(coverage(0, 3, 9, false) > .95 - four);
}

/* With quantiles found by integrating the density of Student's t. */
static void the_mean_has_its_interval(void **state)
{
	static const double three[] = { 9, 10, 11 };
	static const double six[] = { 9, 11, 10, 10, 9.5, 10.5 };
	static const double tenths[] = { .1, .1, .1 };
	struct interval i = stats_mean(three, 3);

	(void)state;
	assert_near(i.mean, 10, 0);
	assert_near(i.deviation, 1, 1e-12);
	assert_near(i.low, 7.515862288, 1e-6);
	assert_near(i.high, 12.484137712, 1e-6);
	i = stats_mean(six, 6);
	assert_near(i.low, 9.257936943, 1e-6);
	assert_near(i.high, 10.742063057, 1e-6);
	/* equal values have no width, not even of rounding */
	i = stats_mean(tenths, 3);
	assert_true(i.low == .1 && i.high == .1);
	i = stats_mean(three, 1);
	assert_true(i.n == 1 && i.low == 9 && i.high == 9);
}

static void the_repetitions_that_decide(void **state)
{
	/* 12.7 / sqrt(2) = 8.98; 4.303 / sqrt(3) = 2.48; 3.182 / 2 = 1.59 */
	static const struct {
		double mean;
		size_t n, needed;
	} cases[] = {
		{ 9, 1, 2 },	    { 8.9, 1, 3 },	   { 2.5, 2, 3 },
		{ 2.4, 2, 4 },	    { -2.4, 3, 4 },	   { .2, 6, 99 },
		{ 0, 3, SIZE_MAX }, { 1e-4, 3, SIZE_MAX },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_int_equal(
			stats_needed(&(struct interval){ .n = cases[i].n,
							 .mean = cases[i].mean,
							 .deviation = 1 }),
			cases[i].needed);
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
		cmocka_unit_test(students_t),
		cmocka_unit_test(changes),
		cmocka_unit_test(the_interval_of_a_change_covers),
		cmocka_unit_test(the_mean_has_its_interval),
		cmocka_unit_test(the_repetitions_that_decide),
		cmocka_unit_test(holm),
		cmocka_unit_test(spearman),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
