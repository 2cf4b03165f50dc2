/* SPDX-License-Identifier: MIT */
#include "service/decide/scale.h"

#include <errno.h>
#include <math.h>

#include "common/util.h"

/* Of rates around their mean. Source: kAutoScalerOutlierSigmas */
#define OUTLIER_SIGMAS 1.0

static double sum_of(const double *v, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += v[i];
	return sum;
}

/* The sample's, over n - 1. */
static double deviation(const double *v, size_t n, double mean)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += (v[i] - mean) * (v[i] - mean);
	return n > 1 ? sqrt(sum / (double)(n - 1)) : 0;
}

/* The sum of the rates, with outliers replaced by the median, of two in the
 * middle the larger. -EINVAL, -ENOMEM. */
static int sum_of_rates(const uint64_t *ns, size_t n, double *ret)
{
	_cleanup_free_ double *rate = calloc(n, sizeof(*rate));
	double mean, far, sum = 0;

	if (!rate)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		if (ns[i] == 0)
			return -EINVAL;
		rate[i] = 1 / (double)ns[i];
	}
	qsort(rate, n, sizeof(*rate), util_compare_double);
	mean = sum_of(rate, n) / (double)n;
	far = OUTLIER_SIGMAS * deviation(rate, n, mean);
	for (size_t i = 0; i < n; i++)
		sum += fabs(rate[i] - mean) <= far ? rate[i] : rate[n / 2];
	*ret = sum;
	return 0;
}

int scale_estimate(const uint64_t *processing_ns, size_t n_workers,
		   const uint64_t *target_ns, size_t n_consumers, uint64_t *ret)
{
	double made, wanted, n;
	int r;

	if (n_workers == 0 || n_consumers == 0)
		return -EAGAIN;
	r = sum_of_rates(processing_ns, n_workers, &made);
	if (r == 0)
		r = sum_of_rates(target_ns, n_consumers, &wanted);
	if (r < 0)
		return r;
	n = ceil(wanted / (made / (double)n_workers));
	*ret = (uint64_t)MIN(MAX(n, 1), SCALE_MOST);
	return 0;
}

uint64_t scale_next(uint64_t current, uint64_t estimate)
{
	uint64_t most = MIN(current * SCALE_FACTOR, current + SCALE_STEP);

	return MIN(MIN(estimate, most), SCALE_MOST);
}
