/* SPDX-License-Identifier: MIT */
#include "runner/spec/run_stats.h"

#include <math.h>
#include <stdlib.h>

#include "common/util.h"

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
	qsort(values, n, sizeof(*values), util_compare_double);
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

/* --- Student's t ------------------------------------------------------ */

/* The regularised incomplete beta function by its continued fraction, which
 * converges fast for x < (a + 1) / (a + b + 2).
 * Source: Press et al., Numerical Recipes (1992), section 6.4. */
static double beta_fraction(double a, double b, double x)
{
	double c = 1, d = 1 - (a + b) * x / (a + 1), f;

	d = 1 / (d != 0 ? d : 1e-300);
	f = d;
	for (int m = 1; m < 300; m++) {
		double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
		double odd = -(a + m) * (a + b + m) * x /
			     ((a + 2 * m) * (a + 2 * m + 1));

		d = 1 / (1 + even * d);
		c = 1 + even / c;
		f *= d * c;
		d = 1 / (1 + odd * d);
		c = 1 + odd / c;
		f *= d * c;
		if (fabs(d * c - 1) < 1e-15)
			break;
	}
	return f;
}

static double beta(double a, double b, double x)
{
	double front;

	if (x <= 0 || x >= 1)
		return x > 0;
	front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) +
		    b * log1p(-x));
	return x < (a + 1) / (a + b + 2)
		       ? front * beta_fraction(a, b, x) / a
		       : 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double stats_t_p(double t, double df)
{
	return beta(df / 2, .5, df / (df + t * t));
}

double stats_t_quantile(double p, double df)
{
	double low = 0, high = 1;

	while (stats_t_p(high, df) > p && high < 1e300)
		high *= 2;
	for (int i = 0; i < 100; i++) {
		double t = low + (high - low) / 2;

		*(stats_t_p(t, df) > p ? &low : &high) = t;
	}
	return high;
}

/* --- changes ---------------------------------------------------------- */

struct moments {
	double mean, variance; /* variance: of the mean */
	double n;
};

static struct moments moments_of(const double *v, size_t n)
{
	struct moments m = { .n = (double)n, .mean = n ? v[0] : 0 };

	/* from the first value on: equal values have no rounding error */
	for (size_t i = 1; i < n; i++)
		m.mean += (v[i] - v[0]) / m.n;
	for (size_t i = 0; i < n; i++)
		m.variance +=
			(v[i] - m.mean) * (v[i] - m.mean) / (m.n * (m.n - 1));
	return m;
}

/* Derive interval and p from `value`, `error` and `df`. */
static void finish_change(struct run_change *c)
{
	double reach = stats_t_quantile(1 - STATS_LEVEL, c->df) * c->error;

	c->p = c->value == 0 ? 1 : stats_t_p(c->value / c->error, c->df);
	c->low = c->value - reach;
	c->high = c->value + reach;
	if (!c->ratio)
		return;
	c->value = exp(c->value);
	c->low = exp(c->low);
	c->high = exp(c->high);
}

/* Source: Welch, "The generalization of Student's problem when several
 * different population variances are involved" (1947). */
static void welch(struct run_change *c, const double *a, size_t n_a,
		  const double *b, size_t n_b)
{
	struct moments x = moments_of(a, n_a), y = moments_of(b, n_b);
	double v = x.variance + y.variance;

	c->value = y.mean - x.mean;
	c->error = sqrt(v);
	c->df = v > 0 ? v * v /
				(x.variance * x.variance / (x.n - 1) +
				 y.variance * y.variance / (y.n - 1))
		      : x.n + y.n - 2;
}

static void student(struct run_change *c, const double *a, double *b, size_t n)
{
	struct moments m;

	for (size_t i = 0; i < n; i++)
		b[i] -= a[i];
	m = moments_of(b, n);
	c->value = m.mean;
	c->error = sqrt(m.variance);
	c->df = m.n - 1;
}

struct run_change stats_change(double *a, size_t n_a, double *b, size_t n_b,
			       bool paired)
{
	struct run_change c = { .ratio = true,
				.value = NAN,
				.low = NAN,
				.high = NAN,
				.p = NAN,
				.error = NAN };
	double largest = 0;

	for (size_t i = 0; i < n_a + n_b; i++) {
		double v = i < n_a ? a[i] : b[i - n_a];

		c.ratio = c.ratio && v > 0;
		largest = fmax(largest, fabs(v));
	}
	for (size_t i = 0; c.ratio && i < n_a; i++)
		a[i] = log(a[i]);
	for (size_t i = 0; c.ratio && i < n_b; i++)
		b[i] = log(b[i]);
	if (n_a < 2 || n_b < 2) {
		if (n_a && n_b) {
			c.value = moments_of(b, n_b).mean -
				  moments_of(a, n_a).mean;
			c.value = c.ratio ? exp(c.value) : c.value;
		}
		return c;
	}
	if (paired)
		student(&c, a, b, n_a);
	else
		welch(&c, a, n_a, b, n_b);
	/* ignore rounding errors */
	c.error = fmax(c.error, 1e-12 * (c.ratio ? 1 : largest));
	finish_change(&c);
	return c;
}

double stats_detectable(const struct run_change *c, double alpha)
{
	double least = stats_t_quantile(alpha, c->df) * c->error;

	if (isnan(c->error))
		return NAN;
	return c->ratio ? exp(least) : least;
}

/* --- a mean ----------------------------------------------------------- */

/* Half of the interval's width. */
static double half_width(double deviation, size_t n)
{
	return stats_t_quantile(1 - STATS_LEVEL, (double)n - 1) * deviation /
	       sqrt((double)n);
}

struct interval stats_mean(const double *values, size_t n)
{
	struct moments m = moments_of(values, n);
	struct interval i = {
		.n = n, .mean = m.mean, .low = m.mean, .high = m.mean
	};

	if (n < 2)
		return i;
	i.deviation = sqrt(m.variance * m.n);
	if (i.deviation > 0) {
		i.low -= half_width(i.deviation, n);
		i.high += half_width(i.deviation, n);
	}
	return i;
}

size_t stats_needed(const struct interval *i)
{
	size_t low = MAX(i->n, 1u), high = 1000000;

	if (!(half_width(i->deviation, high) < fabs(i->mean)))
		return SIZE_MAX;
	/* the width falls with n: `low` is not enough, `high` is */
	while (high - low > 1) {
		size_t n = low + (high - low) / 2;

		*(half_width(i->deviation, n) < fabs(i->mean) ? &high : &low) =
			n;
	}
	return high;
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
