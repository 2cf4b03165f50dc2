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
	assert_in_range(cost.forward_ns, 23167500, 23168500);
	/* its backward pass has the optimiser in it */
	assert_in_range(cost.backward_ns + cost.optimizer_ns, 57786500,
			57787500);
	assert_in_range(cost.optimizer_ns, 527500, 529500);
	assert_in_range(cost.peak_bytes, 5620ull << 20, 5621ull << 20);
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

static uint64_t reduced(const struct gpemu_card *c, const struct gpemu_pass *p,
			size_t n, uint64_t bytes)
{
	uint64_t end = 0;

	assert_int_equal(gpemu_card_reduced_ns(c, p, n, bytes, &end), 0);
	return end;
}

static void gradients_are_reduced_over_the_links(void **state)
{
	const char *const options[] = { "gpu=v100", "gpus=4", "node=dgx-1v",
					NULL };
	const struct gpemu_pass even[] = { { 0, 0 }, { 0, 0 } };
	const struct gpemu_pass late[] = { { 0, 1000000 }, { 0, 90000000 } };
	const char *const alone[] = { "gpu=v100", "gpus=4", NULL };
	struct gpemu_card *c, *slow, *pcie = open_h100();
	uint64_t end, big = 100 << 20;

	(void)state;
	assert_int_equal(gpemu_card_open(options, &c, NULL, 0), 0);
	/* one GPU reduces nothing; none reduces before the slowest has ended */
	assert_int_equal(reduced(c, late, 1, big), 1000000);
	assert_in_range(reduced(c, late, 2, big), 90000001, 99000000);
	/* NVLink is faster than the PCIe of the same card */
	assert_int_equal(gpemu_card_open(alone, &slow, NULL, 0), 0);
	assert_true(reduced(c, even, 2, big) < reduced(slow, even, 2, big));
	gpemu_card_close(slow);
	/* a ring of two sends each byte once: a copy of them over PCIe */
	assert_in_range(reduced(pcie, even, 2, big),
			gpemu_card_copy_ns(pcie, NULL, big, 1) * 9 / 10,
			gpemu_card_copy_ns(pcie, NULL, big, 1) * 11 / 10);
	assert_int_equal(gpemu_card_reduced_ns(c, even, 0, 1, &end), -EINVAL);
	assert_int_equal(gpemu_card_reduced_ns(c, even, 65, 1, &end), -EINVAL);
	gpemu_card_close(c);
	gpemu_card_close(pcie);
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

static void shards_are_gathered_over_the_links(void **state)
{
	const char *const options[] = { "gpu=v100", "gpus=4", NULL };
	struct gpemu_sharded s = { .ranks = 4,
				   .units = 10,
				   .prefetch = 1,
				   .weight_bytes = 100 << 20,
				   .gradient_bytes = 100 << 20,
				   .forward_ns = 1000,
				   .backward_ns = 2000 };
	struct gpemu_card *c;
	uint64_t ns, all;

	(void)state;
	assert_int_equal(gpemu_card_open(options, &c, NULL, 0), 0);
	assert_int_equal(gpemu_card_gpus(c), 4);
	/* parameters twice and gradients once, three quarters of each */
	assert_int_equal(gpemu_card_sharded_ns(c, &s, &all), 0);
	ns = gpemu_card_copy_ns(c, NULL, 3 * 3 * (uint64_t)(25 << 20), 1);
	assert_in_range(all, ns * 8 / 10, ns * 12 / 10);
	/* hidden by the computation, but for the first and the last */
	s.forward_ns = s.backward_ns = 10 * all;
	assert_int_equal(gpemu_card_sharded_ns(c, &s, &ns), 0);
	assert_in_range(ns, 1, all / 10);
	s.ranks = 1;
	assert_int_equal(gpemu_card_sharded_ns(c, &s, &ns), 0);
	assert_int_equal(ns, 0);
	s.units = 0;
	assert_int_equal(gpemu_card_sharded_ns(c, &s, &ns), -EINVAL);
	s.units = 1;
	s.ranks = 65;
	assert_int_equal(gpemu_card_sharded_ns(c, &s, &ns), -EINVAL);
	gpemu_card_close(c);
}

static void without_a_server_nobody_joins(void **state)
{
	struct gpemu_card *c = open_h100();
	struct gpemu_pass pass;
	char error[200] = "";

	(void)state;
	assert_null(gpemu_card_server(c));
	assert_int_equal(gpemu_card_gpus(c), 1);
	assert_int_equal(gpemu_card_join(c, "resnet50", 64, 0, error,
					 sizeof(error)),
			 -EINVAL);
	assert_non_null(strstr(error, "no server's"));
	assert_int_equal(gpemu_card_submit(c, GPEMU_STEP, 64, NULL, 0),
			 -EINVAL);
	assert_int_equal(gpemu_card_done(c, &pass, NULL, 0), -EINVAL);
	gpemu_card_interrupt(c);
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
		cmocka_unit_test(gradients_are_reduced_over_the_links),
		cmocka_unit_test(costs_are_those_of_the_profile),
		cmocka_unit_test(
			an_engine_works_in_order_and_beside_the_others),
		cmocka_unit_test(a_wait_is_never_short),
		cmocka_unit_test(shards_are_gathered_over_the_links),
		cmocka_unit_test(without_a_server_nobody_joins),
		cmocka_unit_test(an_unknown_card_is_refused_with_the_nearest),
		cmocka_unit_test(pinned_memory_is_writable_and_goes_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
