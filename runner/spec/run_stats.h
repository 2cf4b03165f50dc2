/* SPDX-License-Identifier: MIT */
/* Statistics of few repetitions. */
#ifndef GPEMU_RUNNER_SPEC_RUN_STATS_H
#define GPEMU_RUNNER_SPEC_RUN_STATS_H

#include <stdbool.h>
#include <stddef.h>

struct spread {
	size_t n;
	double min, q1, median, q3, max;
	/*
	 * Confidence interval of the median at `ci_level`, for any
	 * distribution: the narrowest pair of order statistics with at least
	 * 0.95. With fewer than 6 values it is their range, and ci_level = 1 -
	 * 2^(1-n). Source: David and Nagaraja, Order Statistics (2003), section
	 * 7.1.
	 */
	double ci_low, ci_high, ci_level;
};

/* The spread of `n` values, which it sorts; quartiles are interpolated. n = 0:
 * all NaN. */
struct spread stats_spread(double *values, size_t n);

/*
 * The change from one sample to another.
 *
 * If all values are positive it is the ratio of geometric means, else the
 * difference of means. Interval and p-value use Student's t, on the logarithms
 * or on the values: exact for pairs whose logarithms (values) differ by a
 * normal error; Welch's approximation for two samples. Rank tests assume less,
 * but with three runs on each side their p-value is never below 0.1.
 */
struct run_change {
	bool ratio;
	double value, low, high; /* b / a or b - a, and its 95 % interval */
	double p;		 /* two-sided, of no change */
	double error, df; /* standard error: of the logarithm, if ratio */
};

/*
 * `paired`: a[i] and b[i] are a pair, n_a == n_b. The arrays are modified. With
 * fewer than two values interval and p are NaN, with none the value too.
 */
struct run_change stats_change(double *a, size_t n_a, double *b, size_t n_b,
			       bool paired);
/* The smallest ratio above 1, or difference, with a p of `alpha` at this error;
 * NaN without an error. */
double stats_detectable(const struct run_change *c, double alpha);

/* The confidence of the intervals of verdicts and changes. */
#define STATS_LEVEL .95

/*
 * The mean of `n` values and its interval at STATS_LEVEL by Student's t, exact
 * for a normal error. Of one value the interval is the value. n > 0.
 * Source: Student, "The Probable Error of a Mean" (1908).
 */
struct interval {
	size_t n;
	double mean, low, high;
	double deviation; /* of the sample */
};
struct interval stats_mean(const double *values, size_t n);
/*
 * The number of values at which the interval would no longer hold 0, with this
 * mean and deviation; SIZE_MAX: more than a million. An estimate, as the
 * deviation is one. Source: Stein, "A Two-Sample Test for a Linear Hypothesis
 * Whose Power Is Independent of the Variance" (1945).
 */
size_t stats_needed(const struct interval *i);

/* Two-sided p of Student's t with `df` degrees of freedom, and its inverse. */
double stats_t_p(double t, double df);
double stats_t_quantile(double p, double df);

/* Holm's correction of `n` p-values, in place; NaN are ignored. Source: Holm,
 * "A Simple Sequentially Rejective Multiple Test Procedure" (1979). */
void stats_holm(double *p, size_t n);

/* Spearman's rank correlation, ties with mean ranks; NaN below two pairs or
 * when one side is constant. */
double stats_spearman(const double *a, const double *b, size_t n);

#endif
