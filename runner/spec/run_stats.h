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
	 * An interval that holds the true median with probability `ci_level`,
	 * whatever the distribution: the narrowest pair of order statistics
	 * with at least 0.95. Fewer than 6 values cannot give that: then it
	 * is their range, and ci_level = 1 - 2^(1-n).
	 * Source: David and Nagaraja, Order Statistics (2003), section 7.1.
	 */
	double ci_low, ci_high, ci_level;
};

/* Of `n` values, which are sorted; quartiles interpolate between values. n = 0:
 * all NaN. */
struct spread stats_spread(double *values, size_t n);

/*
 * What changed from one sample to another.
 *
 * Where all values are positive it is the ratio of geometric means, else the
 * difference of means. The interval and p are Student's, of the logarithms or
 * of the values themselves: exact for pairs whose logarithms (values) differ
 * by a normal error; with two samples Welch's approximation. Tests of ranks
 * assume less, but with three runs each no difference, however large, gives
 * them a p below 0.1.
 */
struct change {
	bool ratio;
	double value, low, high; /* b / a or b - a, and its 95 % interval */
	double p;		 /* two-sided, of no change */
	double error, df; /* standard error: of the logarithm, if ratio */
};

/*
 * `paired`: a[i] and b[i] belong together, n_a == n_b. The arrays are used up.
 * Of fewer than two values there is no interval and no p, of none no value:
 * NaN.
 */
struct change stats_change(double *a, size_t n_a, double *b, size_t n_b,
			   bool paired);
/* The smallest ratio above 1, or difference, that would have had a p of
 * `alpha` with that error; NaN without one. */
double stats_detectable(const struct change *c, double alpha);

/* Two-sided p of Student's t with `df` degrees of freedom, and the t of a p. */
double stats_t_p(double t, double df);
double stats_t_quantile(double p, double df);

/* Holm's correction of `n` p-values, in place; NaN stay and do not count.
 * Source: Holm, "A Simple Sequentially Rejective Multiple Test Procedure"
 * (1979). */
void stats_holm(double *p, size_t n);

/* Spearman's rank correlation, ties with mean ranks; NaN below two pairs or
 * when one side is constant. */
double stats_spearman(const double *a, const double *b, size_t n);

#endif
