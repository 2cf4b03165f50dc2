/* SPDX-License-Identifier: MIT */
/* A profile with `loaded`: times measured among others that are in flight. */
#include "tests/unit/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/units.h"
#include "common/util.h"
#include "fs/device/device.h"

#define HEAD "name: t\nsource: s\n"
#define READ "read:\n  source: s\n  loaded:\n"
/* uniform */
#define ROW(n, size, from, to)                                         \
	"  - {in_queue: " #n ", size: " size ", quantiles: [[0, " from \
	"], [1, " to "]]}\n"
#define ROWS                                                                \
	READ ROW(1, "4K", "50us", "150us") ROW(1, "128K", "200us", "400us") \
		ROW(8, "4K", "200us", "600us")                              \
			ROW(8, "128K", "800us", "2400us")

static struct storage_profile *parsed(const char *yaml)
{
	struct storage_profile *p;
	struct err err = { 0 };

	if (storage_profile_parse(yaml, strlen(yaml), "t", &p, &err) < 0)
		fail_msg("%s", err.text);
	return p;
}

static void assert_within(double got, double want, double share)
{
	if (!(fabs(got - want) <= want * share))
		fail_msg("%g is not within %g %% of %g", got, share * 100,
			 want);
}

static void times_lie_on_lines(void **state)
{
	struct storage_profile *p = parsed(HEAD ROWS);
	const struct storage_class *c = &p->op[STORAGE_READ];

	(void)state;
	assert_within(storage_loaded_ns(c, 4 * KIB, 1, 0), 50e3, 1e-9);
	assert_within(storage_loaded_ns(c, 4 * KIB, 1, .25), 75e3, 1e-9);
	assert_within(storage_loaded_ns(c, 4 * KIB, 1, -1), 100e3, 1e-9);
	/* half-way in bytes, then in depth */
	assert_within(storage_loaded_ns(c, 66 * KIB, 1, .5), 200e3, 1e-9);
	assert_within(storage_loaded_ns(c, 66 * KIB, 8, .5), 1000e3, 1e-9);
	assert_within(storage_loaded_ns(c, 4 * KIB, 3, -1),
		      100e3 + 300e3 * 2 / 7, 1e-9);
	/* shorter ones take no less; longer ones go on */
	assert_within(storage_loaded_ns(c, 1, 1, .5), 100e3, 1e-9);
	assert_within(storage_loaded_ns(c, 252 * KIB, 1, .5), 500e3, 1e-9);
	/* more do not take longer by this */
	assert_within(storage_loaded_ns(c, 4 * KIB, 99, .5), 400e3, 1e-9);
	storage_profile_free(p);
}

/* `n` reads or, each after one, opens, `depth` in flight; the ns of all, and of
 * each read. */
static double closed_loop(const struct storage_profile *p, bool opens, size_t n,
			  size_t depth, uint64_t bytes, uint64_t *took)
{
	uint64_t done[256] = { 0 }, last = 0;
	struct device *d;

	assert_int_equal(device_new(p, 1, &d), 0);
	for (size_t i = 0; i < n; i++) {
		uint64_t now;
		size_t k = 0;

		for (size_t j = 1; j < depth; j++)
			k = done[j] < done[k] ? j : k;
		now = done[k];
		/* the next file's begins when the read ended: an open now, its
		 * read from then on */
		done[k] = opens && i % 2 ? device_schedule(d, STORAGE_OPEN, i,
							   0, 0, now)
					 : device_schedule(d, STORAGE_READ, i,
							   0, bytes, now);
		if (took)
			took[i] = done[k] - now;
		last = MAX(last, done[k]);
	}
	device_free(d);
	return (double)last;
}

/* N in flight that take T on average are N / T a second (Little). */
static void the_rate_is_depth_over_time(void **state)
{
	enum { N = 40000 };
	struct storage_profile *p = parsed(HEAD ROWS);
	uint64_t *took = calloc(N, sizeof(*took));

	(void)state;
	assert_non_null(took);
	assert_within(closed_loop(p, false, N, 1, 4 * KIB, NULL), N * 100e3,
		      .01);
	assert_within(closed_loop(p, false, N, 8, 128 * KIB, took),
		      N * 1600e3 / 8, .01);
	qsort(took, N, sizeof(*took), util_compare_u64);
	assert_within((double)took[N / 2], 1600e3, .02);
	assert_within((double)took[N * 99 / 100], 800e3 + .99 * 1600e3, .01);
	/* without a limit more in flight are more a second */
	assert_within(closed_loop(p, false, N, 32, 4 * KIB, NULL),
		      N * 400e3 / 32, .01);
	free(took);
	storage_profile_free(p);
}

/* A mount answers a lone reader a round trip early: the next read of the same
 * reader is among no others, however early it comes. */
static void an_answer_that_left_is_in_no_queue(void **state)
{
	struct storage_profile *p = parsed(HEAD ROWS);
	uint64_t now = 0;
	struct device *d;

	(void)state;
	assert_int_equal(device_new(p, 1, &d), 0);
	for (int i = 0; i < 1000; i++) {
		uint64_t done;

		device_alone(d, true);
		done = device_schedule(d, STORAGE_READ, 1, 0, 4 * KIB, now);
		assert_true(done - now <= 150 * 1000);
		now = done - MIN(45000, done - now);
	}
	/* not so one that is still to be answered */
	device_alone(d, false);
	for (int i = 0; i < 7; i++)
		device_schedule(d, STORAGE_READ, 1, 0, 4 * KIB, now);
	assert_true(device_schedule(d, STORAGE_READ, 1, 0, 4 * KIB, now) >=
		    now + 200 * 1000);
	device_free(d);
	storage_profile_free(p);
}

/* What was measured at 8 has the waits for the limits in it; 32 wait longer. */
static void limits_hold_for_more(void **state)
{
	enum { N = 40000 };
	struct storage_profile *link =
		parsed(HEAD "link: {source: s, mb_per_s: 655.36}\n" ROWS);
	struct storage_profile *iops =
		parsed(HEAD "iops: {source: s, per_s: 20000, burst: 8}\n" ROWS);

	(void)state;
	/* of 128 KiB each 200 us: the same 8 / 1600 us */
	assert_within(closed_loop(link, false, N, 8, 128 * KIB, NULL),
		      N * 200e3, .02);
	assert_within(closed_loop(link, false, N, 32, 128 * KIB, NULL),
		      N * 200e3, .01);
	assert_within(closed_loop(iops, false, N, 8, 4 * KIB, NULL), N * 50e3,
		      .02);
	assert_within(closed_loop(iops, false, N, 32, 4 * KIB, NULL), N * 50e3,
		      .01);
	storage_profile_free(link);
	storage_profile_free(iops);
}

/* One server: 40 us an open, 50 us and 150 us per 124 KiB a read. */
static void one_server_adds_up(void **state)
{
	enum { N = 40000 };
	struct storage_profile *p = parsed(
		HEAD "channels: {source: s, count: 1, times: [[4K, 0us], "
		     "[128K, 150us]]}\n"
		     "open: {source: s, occupancy: {kind: const, value: "
		     "40us}}\n"
		     "read:\n  source: s\n"
		     "  occupancy: {kind: const, value: 50us}\n"
		     "  loaded:\n" ROW(1, "4K", "50us",
				       "50us") ROW(1, "128K", "200us", "200us")
			     ROW(8, "4K", "400us", "400us")
				     ROW(8, "128K", "1600us", "1600us"));

	(void)state;
	assert_within(closed_loop(p, false, N, 8, 66 * KIB, NULL), N * 125e3,
		      .01);
	assert_within(closed_loop(p, true, N, 1, 66 * KIB, NULL),
		      N * (125e3 + 40e3) / 2, .01);
	assert_within(closed_loop(p, true, N, 8, 66 * KIB, NULL),
		      N * (125e3 + 40e3) / 2, .03);
	storage_profile_free(p);
}

/* A profile that has nothing else. */
static void the_costs_of_writes_and_of_the_rest(void **state)
{
	struct storage_profile *p =
		parsed(HEAD READ ROW(1, "4K", "100us", "100us")
			       ROW(1, "128K", "410us", "410us"));
	struct device *d;

	(void)state;
	assert_int_equal(device_new(p, 1, &d), 0);
	assert_int_equal(device_schedule(d, STORAGE_WRITE, 1, 0, 128 * KIB, 0),
			 410000);
	assert_int_equal(device_go_on(d, 64 * KIB, 64 * KIB, 1000000),
			 1000000 + 160000);
	device_free(d);
	storage_profile_free(p);
}

/* No time is too long to be one: 31 years at most. */
static void the_longest(void **state)
{
	struct storage_profile *p =
		parsed(HEAD READ ROW(1, "1", "0us", "0us")
			       ROW(1, "2", "3600s", "3600s"));
	struct device *d;

	(void)state;
	assert_int_equal(device_new(p, 1, &d), 0);
	assert_int_equal(device_schedule(d, STORAGE_READ, 1, 0, GIB, 0),
			 1000000000000000000);
	device_free(d);
	storage_profile_free(p);
}

static void bad_rows(void **state)
{
	static const struct {
		const char *yaml, *text;
	} bad[] = {
		{ HEAD READ ROW(2, "4K", "1us", "2us"),
		  "must start at in_queue 1" },
		{ HEAD READ ROW(1, "8K", "1us", "2us")
			  ROW(1, "4K", "1us", "2us"),
		  "ascend, by in_queue and then by size" },
		{ HEAD READ ROW(1, "4K", "1us", "2us")
			  ROW(4, "4K", "1us", "2us") ROW(2, "8K", "1us", "2us"),
		  "ascend, by in_queue and then by size" },
		{ HEAD READ ROW(1, "4K", "1us", "2us")
			  ROW(1, "8K", "2us", "1us"),
		  "t:7:5: quantiles must ascend" },
		{ HEAD READ "  - {in_queue: 1, size: 4K}\n",
		  "quantiles must go from 0 to 1" },
		{ HEAD
		  "open:\n  source: s\n  loaded:\n" ROW(1, "4K", "1us", "2us"),
		  "loaded is for reads" },
		{ HEAD
		  "write:\n  source: s\n  loaded:\n" ROW(1, "4K", "1us", "2us"),
		  "loaded is for reads" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct storage_profile *p;
		struct err err = { 0 };

		assert_true(storage_profile_parse(bad[i].yaml,
						  strlen(bad[i].yaml), "t", &p,
						  &err) < 0);
		if (!strstr(err.text, bad[i].text))
			fail_msg("%s", err.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_lie_on_lines),
		cmocka_unit_test(the_rate_is_depth_over_time),
		cmocka_unit_test(an_answer_that_left_is_in_no_queue),
		cmocka_unit_test(limits_hold_for_more),
		cmocka_unit_test(one_server_adds_up),
		cmocka_unit_test(the_costs_of_writes_and_of_the_rest),
		cmocka_unit_test(the_longest),
		cmocka_unit_test(bad_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
