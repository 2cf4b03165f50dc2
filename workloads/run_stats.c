/* SPDX-License-Identifier: MIT */
#include "workloads/run_stats.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/rng.h"
#include "common/util.h"

/* The exact distribution costs n^2 * sum of ranks: fine up to here. */
enum { EXACT_MAX = 60, RESAMPLES = 2000 };

static int compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* --- spread ----------------------------------------------------------- */

/* Linear between the two nearest values, as R's type 7. */
static double quantile(const double *v, size_t n, double q)
{
	double at = q * (double)(n - 1);
	size_t i = (size_t)at;

	return i + 1 < n ? v[i] + (at - (double)i) * (v[i + 1] - v[i]) : v[i];
}

/*
 * The interval from the k-th smallest to the k-th largest value misses the
 * median when fewer than k values lie on one side of it: with n fair coins,
 * 2 P(heads < k).
 */
static void interval(const double *v, struct spread *s)
{
	double n = (double)s->n, below = 0, missed = 0;
	size_t k = 0;

	for (size_t i = 0; i < (s->n + 1) / 2; i++) {
		below += exp(lgamma(n + 1) - lgamma((double)i + 1) -
			     lgamma(n - (double)i + 1) - n * M_LN2);
		if (i > 0 && 2 * below > .05)
			break;
		k = i;
		missed = 2 * below;
	}
	s->ci_low = v[k];
	s->ci_high = v[s->n - 1 - k];
	s->ci_level = s->n > 1 ? 1 - missed : 0;
}

struct spread stats_spread(double *values, size_t n)
{
	struct spread s = { .n = n,
			    .min = NAN,
			    .q1 = NAN,
			    .median = NAN,
			    .q3 = NAN,
			    .max = NAN,
			    .ci_low = NAN,
			    .ci_high = NAN };

	if (!n)
		return s;
	qsort(values, n, sizeof(*values), compare);
	s.min = values[0];
	s.q1 = quantile(values, n, .25);
	s.median = quantile(values, n, .5);
	s.q3 = quantile(values, n, .75);
	s.max = values[n - 1];
	interval(values, &s);
	return s;
}

/* --- ranks ------------------------------------------------------------ */

/* Twice the mean rank of each value, so that ties stay whole numbers. */
static void ranks(const double *v, size_t n, size_t *ret)
{
	for (size_t i = 0; i < n; i++) {
		size_t below = 0, equal = 0;

		for (size_t j = 0; j < n; j++) {
			below += v[j] < v[i];
			equal += v[j] == v[i];
		}
		ret[i] = 2 * below + equal + 1;
	}
}

double stats_spearman(const double *a, const double *b, size_t n)
{
	_cleanup_free_ size_t *ra = calloc(n + 1, sizeof(*ra));
	_cleanup_free_ size_t *rb = calloc(n + 1, sizeof(*rb));
	double mean = (double)n + 1; /* of doubled ranks */
	double ab = 0, aa = 0, bb = 0;

	if (!ra || !rb || n < 2)
		return NAN;
	ranks(a, n, ra);
	ranks(b, n, rb);
	for (size_t i = 0; i < n; i++) {
		double da = (double)ra[i] - mean, db = (double)rb[i] - mean;

		ab += da * db;
		aa += da * da;
		bb += db * db;
	}
	return aa > 0 && bb > 0 ? ab / sqrt(aa * bb) : NAN;
}

/* --- Mann-Whitney ----------------------------------------------------- */

/*
 * ways[k][s]: in how many ways k of the values seen so far have ranks that
 * add up to s. Under the hypothesis every choice of n_a of all is as likely.
 */
static double exact_p(const size_t *rank, size_t n, size_t n_a, size_t sum_a)
{
	size_t most = n * (n + 1); /* of doubled ranks */
	size_t width = most + 1;
	_cleanup_free_ double *ways = calloc((n_a + 1) * width, sizeof(*ways));
	double mean = (double)n_a * (double)(n + 1);
	double seen = fabs((double)sum_a - mean), all = 0, extreme = 0;

	if (!ways)
		return NAN;
	ways[0] = 1;
	for (size_t i = 0; i < n; i++)
		for (size_t k = MIN(i + 1, n_a); k > 0; k--)
			for (size_t s = rank[i]; s < width; s++)
				ways[k * width + s] +=
					ways[(k - 1) * width + s - rank[i]];
	for (size_t s = 0; s < width; s++) {
		double w = ways[n_a * width + s];

		all += w;
		/* sums are whole: half a unit is safe against rounding */
		if (fabs((double)s - mean) > seen - .5)
			extreme += w;
	}
	return extreme / all;
}

/* Variance of the doubled rank sum: that of drawing without putting back. */
static double normal_p(const size_t *rank, size_t n, size_t n_a, size_t sum_a)
{
	double mean = (double)(n + 1), spread = 0, away;
	double a = (double)n_a, b = (double)(n - n_a);

	for (size_t i = 0; i < n; i++)
		spread += ((double)rank[i] - mean) * ((double)rank[i] - mean);
	away = fabs((double)sum_a - a * mean);
	if (spread <= 0 || away == 0)
		return 1;
	/* -1: continuity, half a rank */
	return erfc(MAX(0, away - 1) /
		    sqrt(2 * a * b * spread / ((double)n * (double)(n - 1))));
}

double stats_mann_whitney(const double *a, size_t n_a, const double *b,
			  size_t n_b)
{
	size_t n = n_a + n_b, sum_a = 0;
	_cleanup_free_ double *all = calloc(n + 1, sizeof(*all));
	_cleanup_free_ size_t *rank = calloc(n + 1, sizeof(*rank));

	if (!all || !rank || !n_a || !n_b)
		return NAN;
	memcpy(all, a, n_a * sizeof(*a));
	memcpy(all + n_a, b, n_b * sizeof(*b));
	ranks(all, n, rank);
	for (size_t i = 0; i < n_a; i++)
		sum_a += rank[i];
	return n <= EXACT_MAX ? exact_p(rank, n, n_a, sum_a)
			      : normal_p(rank, n, n_a, sum_a);
}

/* --- bootstrap -------------------------------------------------------- */

static double resampled_median(struct rng *rng, const double *v, size_t n,
			       double *scratch)
{
	for (size_t i = 0; i < n; i++)
		scratch[i] = v[rng_below(rng, n)];
	qsort(scratch, n, sizeof(*scratch), compare);
	return quantile(scratch, n, .5);
}

void stats_ratio_interval(const double *a, size_t n_a, const double *b,
			  size_t n_b, uint64_t seed, double *ret_low,
			  double *ret_high)
{
	struct rng rng = rng_stream(seed, "bootstrap", 0);
	_cleanup_free_ double *scratch =
		calloc(MAX(n_a, n_b) + 1, sizeof(*scratch));
	_cleanup_free_ double *ratio = calloc(RESAMPLES, sizeof(*ratio));
	size_t n = 0;

	*ret_low = *ret_high = NAN;
	if (!scratch || !ratio || n_a < 2 || n_b < 2)
		return;
	for (size_t i = 0; i < RESAMPLES; i++) {
		double x = resampled_median(&rng, a, n_a, scratch);
		double y = resampled_median(&rng, b, n_b, scratch);

		if (x != 0)
			ratio[n++] = y / x;
	}
	if (n < RESAMPLES)
		return; /* a zero among them: the ratio has no meaning */
	qsort(ratio, n, sizeof(*ratio), compare);
	*ret_low = quantile(ratio, n, .025);
	*ret_high = quantile(ratio, n, .975);
}

/* --- several tests ---------------------------------------------------- */

void stats_holm(double *p, size_t n)
{
	_cleanup_free_ bool *done = calloc(n + 1, sizeof(*done));
	size_t left = 0;
	double least = 0;

	for (size_t i = 0; i < n; i++)
		left += !isnan(p[i]);
	for (; done && left; left--) {
		size_t best = n;

		for (size_t i = 0; i < n; i++)
			if (!done[i] && !isnan(p[i]) &&
			    (best == n || p[i] < p[best]))
				best = i;
		done[best] = true;
		least = fmin(1, fmax(least, p[best] * (double)left));
		p[best] = least;
	}
}
