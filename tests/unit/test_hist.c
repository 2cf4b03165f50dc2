/* SPDX-License-Identifier: MIT */
#include "tests/unit/test.h"

#include <math.h>

#include "common/hist.h"
#include "common/json.h"

static void quantiles_are_within_a_bucket(void **state)
{
	static struct hist h;

	(void)state;
	for (uint64_t i = 1; i <= 100000; i++)
		hist_add(&h, i * 1000);
	assert_true(fabs(hist_quantile(&h, .5) / 50e6 - 1) < .01);
	assert_true(fabs(hist_quantile(&h, .99) / 99e6 - 1) < .01);
	assert_true(hist_quantile(&h, 1) <= 100e6);
	assert_true(fabs(hist_mean(&h) - 50000500) < 1);
	assert_int_equal(h.max_ns, 100000000);
}

static void a_thread_that_adds_alone_adds_the_same(void **state)
{
	static struct hist a, b;
	static const uint64_t v[] = { 0, 63, 64, 12345, 7, UINT64_MAX, 1000 };

	(void)state;
	for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++) {
		for (size_t times = 0; times < i; times++)
			hist_add(&a, v[i]);
		hist_add_alone(&b, v[i], i);
		assert_memory_equal(&a, &b, sizeof(a));
	}
}

static void empty_is_zero(void **state)
{
	static struct hist h;

	(void)state;
	assert_true(hist_mean(&h) == 0);
	assert_true(hist_quantile(&h, .99) == 0);
}

static void extremes_have_a_bucket(void **state)
{
	static struct hist h;

	(void)state;
	hist_add(&h, 0);
	hist_add(&h, UINT64_MAX);
	assert_int_equal(h.n, 2);
	assert_true(hist_quantile(&h, .25) == 0);
}

static void merge_adds(void **state)
{
	static struct hist a, b;

	(void)state;
	hist_add(&a, 10);
	hist_add(&b, 30);
	hist_merge(&a, &b);
	assert_true(hist_mean(&a) == 20);
	assert_int_equal(a.max_ns, 30);
}

static void json_is_in_the_unit_asked_for(void **state)
{
	static struct hist h;
	double mean, max;

	(void)state;
	hist_add(&h, 2000);
	json_auto_t *j = hist_json(&h, 1000);

	assert_int_equal(
		json_unpack(j, "{s:F, s:F}", "mean", &mean, "max", &max), 0);
	assert_true(mean == 2 && max == 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quantiles_are_within_a_bucket),
		cmocka_unit_test(a_thread_that_adds_alone_adds_the_same),
		cmocka_unit_test(empty_is_zero),
		cmocka_unit_test(extremes_have_a_bucket),
		cmocka_unit_test(merge_adds),
		cmocka_unit_test(json_is_in_the_unit_asked_for),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
