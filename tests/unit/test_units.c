/* SPDX-License-Identifier: MIT */
#include "tests/unit/test.h"

#include <errno.h>

#include "common/units.h"

static void size_takes_powers_of_1024(void **state)
{
	uint64_t v;

	(void)state;
	assert_int_equal(units_parse_size("512K", &v), 0);
	assert_int_equal(v, 512 * 1024);
	assert_int_equal(units_parse_size("1.5G", &v), 0);
	assert_int_equal(v, 3 * GIB / 2);
	assert_int_equal(units_parse_size("7", &v), 0);
	assert_int_equal(v, 7);
}

static void size_refuses_what_is_not_one(void **state)
{
	static const char *const bad[] = { "",	  "K",	  "4k b", "1e",	 "nan",
					   "inf", "0x10", "4X",	  "4M4", " 4" };
	uint64_t v;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(units_parse_size(bad[i], &v), -EINVAL);
	assert_int_equal(units_parse_size("-1", &v), -ERANGE);
	assert_int_equal(units_parse_size("1e30", &v), -ERANGE);
}

static void duration_needs_its_unit(void **state)
{
	uint64_t v;

	(void)state;
	assert_int_equal(units_parse_duration("80us", &v), 0);
	assert_int_equal(v, 80000);
	assert_int_equal(units_parse_duration("1.5ms", &v), 0);
	assert_int_equal(v, 1500000);
	assert_int_equal(units_parse_duration("0", &v), 0);
	assert_int_equal(units_parse_duration("5", &v), -EINVAL);
}

static void capacity_is_a_share_or_a_size(void **state)
{
	struct units_capacity c;

	(void)state;
	assert_int_equal(units_parse_capacity("35%", &c), 0);
	assert_int_equal(units_capacity_bytes(&c, 1000), 350);
	assert_int_equal(units_parse_capacity("8G", &c), 0);
	assert_int_equal(units_capacity_bytes(&c, 1000), 8 * GIB);
	assert_false(c.yields);
	assert_int_equal(units_parse_capacity("101%", &c), -ERANGE);
	assert_int_equal(units_parse_capacity("auto", &c), 0);
	assert_int_equal(units_capacity_bytes(&c, 1000), 350);
	assert_true(c.yields);
}

static void a_part_stands_for_the_whole(void **state)
{
	(void)state;
	assert_int_equal(units_unscaled(12345, 1), 12345);
	assert_int_equal(units_unscaled(0, .01), 0);
	assert_int_equal(units_unscaled(41, .01), 4100);
	assert_int_equal(units_unscaled(2, .75), 3); /* 2.67 */
	assert_int_equal(units_unscaled(1ull << 60, .001), 1ull << 63);
}

static void exact_text_reads_back(void **state)
{
	static const uint64_t values[] = {
		0,	 1,	  1023,	     1024,  1536,	    65537,
		3 * GIB, 1000000, 123456789, 80000, 3600 * NS_PER_S
	};
	char buf[UNITS_TEXT];
	uint64_t v;

	(void)state;
	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
		assert_int_equal(
			units_parse_size(units_exact_size(values[i], buf), &v),
			0);
		assert_int_equal(v, values[i]);
		assert_int_equal(units_parse_duration(
					 units_exact_duration(values[i], buf),
					 &v),
				 0);
		assert_int_equal(v, values[i]);
	}
}

static void exact_share_reads_back(void **state)
{
	static const char *const texts[] = { "35%",
					     "0.1%",
					     "100%",
					     "auto",
					     ".3333333333333333333%",
					     "14.285714285714286%" };
	struct units_capacity c, again;
	char buf[UNITS_TEXT];

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		assert_int_equal(units_parse_capacity(texts[i], &c), 0);
		units_exact_capacity(&c, buf);
		assert_int_equal(units_parse_capacity(buf, &again), 0);
		assert_true(again.fraction == c.fraction);
		assert_int_equal(again.yields, c.yields);
	}
	/* as it was written, if possible */
	units_parse_capacity("35%", &c);
	assert_string_equal(units_exact_capacity(&c, buf), "35%");
	for (int i = 1; i < 10000; i++) {
		c.fraction = i / 1e4 / 100;
		units_exact_capacity(&c, buf);
		assert_int_equal(units_parse_capacity(buf, &again), 0);
		assert_true(again.fraction == c.fraction);
	}
}

static void human_text_has_three_digits(void **state)
{
	char buf[UNITS_TEXT];

	(void)state;
	assert_string_equal(units_human_size(999, buf), "999 B");
	assert_string_equal(units_human_size(1536, buf), "1.50 KiB");
	assert_string_equal(units_human_duration(12345678, buf), "12.3 ms");
	assert_string_equal(units_human_duration(999999, buf), "1.00 ms");
	assert_string_equal(units_human_duration(0, buf), "0 s");
}

static void times_before_1970_and_too_late(void **state)
{
	struct timespec t;

	(void)state;
	assert_int_equal(units_time_ns(1, 5), 1000000005);
	assert_int_equal(units_time_ns(-1, 5), -999999995);
	assert_int_equal(units_time_ns(INT64_MAX, 0), INT64_MAX);
	assert_int_equal(units_time_ns(INT64_MIN, 0), INT64_MIN);
	assert_int_equal(units_time_ns(9223372036, 999999999), INT64_MAX);
	t = units_timespec(-999999995);
	assert_int_equal(t.tv_sec, -1);
	assert_int_equal(t.tv_nsec, 5);
	t = units_timespec(-2000000000);
	assert_int_equal(t.tv_sec, -2);
	assert_int_equal(t.tv_nsec, 0);
	t = units_timespec(1000000005);
	assert_int_equal(t.tv_sec, 1);
	assert_int_equal(t.tv_nsec, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(size_takes_powers_of_1024),
		cmocka_unit_test(size_refuses_what_is_not_one),
		cmocka_unit_test(duration_needs_its_unit),
		cmocka_unit_test(capacity_is_a_share_or_a_size),
		cmocka_unit_test(a_part_stands_for_the_whole),
		cmocka_unit_test(exact_text_reads_back),
		cmocka_unit_test(exact_share_reads_back),
		cmocka_unit_test(human_text_has_three_digits),
		cmocka_unit_test(times_before_1970_and_too_late),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
