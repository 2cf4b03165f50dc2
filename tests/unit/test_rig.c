/* SPDX-License-Identifier: MIT */
/* Where the rig ends: one limit at a time, just passed and just kept. */
#include "tests/unit/test.h"

#include <string.h>

#include "loader/account/rig.h"

/* Far from all limits. */
static const struct rig easy = {
	.samples_per_wall_s = 1000,
	.ceiling = 90000,
	.late_us = 3,
	.step_us = 64000,
	.cpus_used = .4,
	.cpus = 2,
	.time_scale = .2,
	.real_share = .001,
};

/* "ceiling", "timers cpu", ...: the limits that are reached. */
static const char *reached(const struct rig *r)
{
	static char names[80];
	json_t *j = rig_json(r), *limit;
	size_t i;

	names[0] = 0;
	json_array_foreach (json_object_get(j, "limits"), i, limit) {
		const char *why =
			json_string_value(json_object_get(limit, "why"));

		strcat(strcat(names, i ? " " : ""),
		       json_string_value(json_object_get(limit, "limit")));
		assert_non_null(why);
		assert_true(strlen(why) > 40);
	}
	json_decref(j);
	return names;
}

static void a_run_far_from_all_limits_names_none(void **state)
{
	(void)state;
	assert_string_equal(reached(&easy), "");
	assert_string_equal(reached(&(struct rig){ .time_scale = 1 }), "");
}

static void the_ceiling_is_within_a_factor_of_two(void **state)
{
	struct rig r = easy;

	(void)state;
	r.ceiling = 2001;
	assert_string_equal(reached(&r), "");
	r.ceiling = 1999;
	assert_string_equal(reached(&r), "ceiling");
	/* all CPUs busy */
	r = easy;
	r.cpus_used = .99;
	assert_string_equal(reached(&r), "");
	r.cpus_used = 1.01;
	assert_string_equal(reached(&r), "ceiling");
}

static void timers_are_late_by_more_than_a_hundredth_of_a_step(void **state)
{
	struct rig r = easy;

	(void)state;
	r.late_us = 639;
	assert_string_equal(reached(&r), "");
	r.late_us = 641;
	assert_string_equal(reached(&r), "timers");
	/* the same lateness in steps ten times as long */
	r.step_us *= 10;
	assert_string_equal(reached(&r), "");
}

static void the_cpus_are_saturated(void **state)
{
	struct rig r = easy;

	(void)state;
	r.cpus_used = 1.79;
	assert_string_equal(reached(&r), "ceiling");
	r.cpus_used = 1.81;
	assert_string_equal(reached(&r), "ceiling cpu");
	r.cpus = 16;
	assert_string_equal(reached(&r), "");
}

static void the_time_scale_amplifies_real_work(void **state)
{
	struct rig r = easy;
	json_t *j;

	(void)state;
	r.real_share = .011;
	assert_string_equal(reached(&r), "time_scale");
	j = rig_json(&r);
	assert_non_null(
		strstr(json_string_value(json_object_get(
			       json_array_get(json_object_get(j, "limits"), 0),
			       "why")),
		       "counts 5-fold"));
	json_decref(j);
	/* at its own pace it is what the loader really costs */
	r.time_scale = 1;
	assert_string_equal(reached(&r), "");
}

static void several_at_once(void **state)
{
	struct rig r = { .samples_per_wall_s = 9,
			 .ceiling = 10,
			 .late_us = 5,
			 .step_us = 100,
			 .cpus_used = 2,
			 .cpus = 2,
			 .time_scale = 2,
			 .real_share = .5 };

	(void)state;
	assert_string_equal(reached(&r), "ceiling timers cpu time_scale");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_run_far_from_all_limits_names_none),
		cmocka_unit_test(the_ceiling_is_within_a_factor_of_two),
		cmocka_unit_test(
			timers_are_late_by_more_than_a_hundredth_of_a_step),
		cmocka_unit_test(the_cpus_are_saturated),
		cmocka_unit_test(the_time_scale_amplifies_real_work),
		cmocka_unit_test(several_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
