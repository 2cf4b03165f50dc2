/* SPDX-License-Identifier: MIT */
/* libgpemu's card: the costs of its profile, and engines that work in order. */
#include "tests/unit/test.h"

#include <errno.h>
#include <gpemu.h>
#include <string.h>

static struct gpemu_card *open_h100(void)
{
	static const char *const options[] = { "gpu=h100", "time_scale=0.1",
					       NULL };
	struct gpemu_card *c;
	char error[200] = "";

	if (gpemu_card_open(options, &c, error, sizeof(error)) < 0)
		fail_msg("%s", error);
	return c;
}

/* Against `gpemu-profile show h100 resnet50 64`, of the shipped file. */
static void costs_are_those_of_the_profile(void **state)
{
	struct gpemu_card *c = open_h100();
	struct gpemu_cost cost;
	char error[200] = "";

	(void)state;
	assert_non_null(strstr(gpemu_card_profile(c), "\"resnet50\""));
	assert_int_equal(gpemu_card_cost(c, "resnet50", 64, 0, &cost, NULL, 0),
			 0);
	assert_in_range(cost.forward_ns, 23088500, 23089500);
	/* its backward pass has the optimiser in it */
	assert_in_range(cost.backward_ns + cost.optimizer_ns, 57754500,
			57755500);
	assert_in_range(cost.optimizer_ns, 524500, 525500);
	assert_in_range(cost.peak_bytes, 5621ull << 20, 5622ull << 20);
	assert_false(cost.extrapolated);
	assert_in_range(gpemu_card_copy_ns(c, "resnet50", 38535680, 1), 723500,
			724500);
	assert_in_range(gpemu_card_copy_ns(c, "resnet50", 38535680, 0), 3114500,
			3115500);

	assert_int_equal(gpemu_card_cost(c, "resnet5", 64, 0, &cost, error,
					 sizeof(error)),
			 -ENOENT);
	assert_non_null(strstr(error, "did you mean 'resnet50'"));
	assert_int_equal(gpemu_card_cost(c, "resnet50", 1 << 20, 0, &cost,
					 error, sizeof(error)),
			 -E2BIG);
	assert_int_equal(gpemu_card_cost(c, "resnet50", 0, 0, &cost, error,
					 sizeof(error)),
			 -EINVAL);
	gpemu_card_close(c);
}

static void an_engine_works_in_order_and_beside_the_others(void **state)
{
	struct gpemu_card *c = open_h100();
	uint64_t begin, end;

	(void)state;
	assert_int_equal(
		gpemu_card_queue(c, GPEMU_COMPUTE, 100, 50, &begin, &end), 0);
	assert_int_equal(begin, 100);
	assert_int_equal(end, 150);
	/* it is asked for earlier, and the engine is busy */
	assert_int_equal(
		gpemu_card_queue(c, GPEMU_COMPUTE, 0, 10, &begin, &end), 0);
	assert_int_equal(begin, 150);
	assert_int_equal(
		gpemu_card_queue(c, GPEMU_COPY_IN, 0, 10, &begin, &end), 0);
	assert_int_equal(begin, 0);
	assert_int_equal(gpemu_card_queue(c, GPEMU_ENGINES, 0, 1, &begin, &end),
			 -EINVAL);
	/* what is refused leaves the engine as it was */
	assert_int_equal(gpemu_card_queue(c, GPEMU_COPY_IN, UINT64_MAX, 1,
					  &begin, &end),
			 -ERANGE);
	assert_int_equal(
		gpemu_card_queue(c, GPEMU_COPY_IN, 0, 10, &begin, &end), 0);
	assert_int_equal(begin, 10);
	gpemu_card_close(c);
}

static void a_wait_is_never_short(void **state)
{
	struct gpemu_card *c = open_h100();
	uint64_t until = gpemu_card_now_ns(c) + 20 * 1000 * 1000;

	(void)state;
	gpemu_card_wait(c, until);
	assert_true(gpemu_card_now_ns(c) >= until);
	gpemu_card_close(c);
}

static void an_unknown_card_is_refused_with_the_nearest(void **state)
{
	static const char *const wrong[] = { "gpu=h10", NULL };
	static const char *const other[] = { "batch=3", NULL };
	struct gpemu_card *c = (void *)-1;
	char error[200] = "";

	(void)state;
	assert_true(gpemu_card_open(wrong, &c, error, sizeof(error)) < 0);
	assert_null(c);
	assert_non_null(strstr(error, "did you mean 'h100'"));
	assert_true(gpemu_card_open(other, &c, NULL, 0) < 0);
	assert_null(c);
	gpemu_card_close(NULL);
}

static void pinned_memory_is_writable_and_goes_back(void **state)
{
	enum { BYTES = 64 << 10 };
	char *p = gpemu_pin(BYTES);

	(void)state;
	if (!p)
		skip(); /* ulimit -l */
	memset(p, 1, BYTES);
	gpemu_unpin(p, BYTES);
	gpemu_unpin(NULL, BYTES);
	assert_null(gpemu_pin(0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(costs_are_those_of_the_profile),
		cmocka_unit_test(
			an_engine_works_in_order_and_beside_the_others),
		cmocka_unit_test(a_wait_is_never_short),
		cmocka_unit_test(an_unknown_card_is_refused_with_the_nearest),
		cmocka_unit_test(pinned_memory_is_writable_and_goes_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
