/* SPDX-License-Identifier: MIT */
/* The paths of metrics in a record. */
#include "tests/unit/test.h"

#include <errno.h>
#include <math.h>

#include "common/json.h"
#include "runner/spec/run_metric.h"

static const char *const RECORD =
	"{\"totals\": {\"seconds\": 8, \"name\": \"x\"}, \"epochs\": ["
	"{\"s\": 100, \"hits\": 0, \"misses\": 4},"
	"{\"s\": 10, \"hits\": 1, \"misses\": 3},"
	"{\"s\": 30, \"hits\": 3, \"misses\": 1},"
	"{\"s\": 14, \"hits\": 2, \"misses\": 2}],"
	"\"one\": [{\"s\": 5}]}";

static void a_path_names_values(void **state)
{
	static const struct {
		struct metric m;
		double wanted; /* NAN: absent */
	} cases[] = {
		{ { .path = "totals.seconds" }, 8 },
		{ { .path = "totals.seconds", .scale = 100 }, 800 },
		{ { .path = "epochs[0].s" }, 100 },
		{ { .path = "epochs[-1].s" }, 14 },
		{ { .path = "epochs[steady].s" }, 14 },
		{ { .path = "epochs[1:].s" }, 14 },
		{ { .path = "epochs[1:3].s" }, 20 },
		{ { .path = "epochs[:-1].s" }, 30 },
		{ { .path = "one[steady].s" }, 5 },
		{ { .path = "one[1:].s" }, NAN },
		{ { .path = "epochs[7].s" }, NAN },
		{ { .path = "totals.name" }, NAN },
		{ { .path = "totals" }, NAN },
		{ { .path = "moon.phase" }, NAN },
		{ { .path = "epochs[1].hits + epochs[1].misses" }, 4 },
		/* of 1/4, 3/4 and 2/4 */
		{ { .path = "epochs[steady].hits",
		    .per = "epochs[steady].hits + epochs[steady].misses" },
		  .5 },
		{ { .path = "totals.seconds", .per = "epochs[0].hits" }, NAN },
	};
	json_auto_t *record = json_loads(RECORD, 0, NULL);

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		double v = NAN;
		int r = metric_value(&cases[i].m, record, &v);

		assert_int_equal(metric_check_path(cases[i].m.path, NULL), 0);
		assert_int_equal(r, isnan(cases[i].wanted) ? -ENOENT : 0);
		if (r == 0)
			assert_true(v == cases[i].wanted);
	}
}

static void what_is_not_a_path_is_refused(void **state)
{
	static const char *const bad[] = {
		"",	 "a.",	   ".a",     "a..b",
		"a[",	 "a[1",	   "a[x].b", "a[:",
		"a[1:2", "a + ",   "a+b",    "a b",
		"a[1]b", "a[1:x]", "a + b.", "a[9999999999999999999999]"
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(metric_check_path(bad[i], NULL), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_path_names_values),
		cmocka_unit_test(what_is_not_a_path_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
