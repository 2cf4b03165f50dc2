/* SPDX-License-Identifier: MIT */
/* Where a worker's time goes, also if it says so afterwards. */
#include "tests/unit/test.h"

#include "loader/pipeline/worker_clock.h"

static struct activity read_clock(struct worker_clock *c)
{
	uint64_t cores;

	return worker_clock_read(c, &cores);
}

static void reads_that_were_transforms(void **state)
{
	struct tick *tick = tick_new_fake();
	struct worker_clock c;
	struct activity a;

	(void)state;
	worker_clock_init(&c, tick, 0);
	worker_clock_turn(&c, READING);
	tick_wait(tick, 100);
	worker_clock_prepared(&c, 60, READING);
	a = read_clock(&c);
	assert_int_equal(a.read_ns, 60);
	assert_int_equal(a.prep_ns, 40);
	/* no more than since the last turn, and nothing of the future */
	tick_wait(tick, 150);
	worker_clock_prepared(&c, 60, READING);
	a = read_clock(&c);
	assert_int_equal(a.read_ns, 60);
	assert_int_equal(a.prep_ns, 90);
	tick_wait(tick, 170);
	worker_clock_prepared(&c, 500, PREPARING);
	tick_wait(tick, 180);
	worker_clock_turn(&c, READING);
	a = read_clock(&c);
	assert_int_equal(a.read_ns, 80);
	assert_int_equal(a.prep_ns, 100);
	worker_clock_fini(&c);
	tick_free(tick);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_that_were_transforms),
	};

	return cmocka_run_group_tests_name("worker_clock", tests, NULL, NULL);
}
