/* SPDX-License-Identifier: MIT */
/* Statistics of few repetitions, without an assumption on their shape. */
#ifndef GPEMU_WORKLOADS_RUN_STATS_H
#define GPEMU_WORKLOADS_RUN_STATS_H

#include <stddef.h>
#include <stdint.h>

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
 * Do two samples come from the same distribution? The two-sided p of the
 * Mann-Whitney test: exact, ties included, up to 60 values in all; beyond
 * that by the normal approximation with correction for ties. NaN when one is
 * empty.
 * Source: Mann and Whitney, "On a Test of Whether one of Two Random Variables
 * is Stochastically Larger than the Other" (1947).
 */
double stats_mann_whitney(const double *a, size_t n_a, const double *b,
			  size_t n_b);

/*
 * A 95 % interval of median(b) / median(a) by resampling both (bootstrap,
 * percentiles of 2000 resamples), from a fixed stream of `seed`.
 * Both NaN when either has less than two values.
 */
void stats_ratio_interval(const double *a, size_t n_a, const double *b,
			  size_t n_b, uint64_t seed, double *ret_low,
			  double *ret_high);

/* Holm's correction of `n` p-values, in place; NaN stay and do not count.
 * Source: Holm, "A Simple Sequentially Rejective Multiple Test Procedure"
 * (1979). */
void stats_holm(double *p, size_t n);

/* Spearman's rank correlation, ties with mean ranks; NaN below two pairs or
 * when one side is constant. */
double stats_spearman(const double *a, const double *b, size_t n);

#endif
