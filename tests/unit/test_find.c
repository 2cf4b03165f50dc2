/* SPDX-License-Identifier: MIT */
/* The search of --find-max-gpus on invented storage. */
#include "tests/unit/test.h"

#include <errno.h>
#include <string.h>

#include "runner/run_find.h"

enum { MOST = 20 };

struct store {
	uint64_t feeds; /* GPUs, at 100 % */
	uint64_t noisy; /* with this many, run 0 is wrong by `lie` */
	double lie;
	uint64_t fails; /* with this many or more nothing works */
	unsigned asked[MOST + 2];
};

static int au(void *ctx, uint64_t gpus, size_t run, double *ret)
{
	struct store *s = ctx;

	assert_in_range(gpus, 1, MOST);
	/* each run of each number once, in their order */
	assert_int_equal(s->asked[gpus]++, run);
	if (s->fails && gpus >= s->fails)
		return -EIO;
	*ret = gpus <= s->feeds ? 100 : 100 * (double)s->feeds / (double)gpus;
	if (gpus == s->noisy && run == 0)
		*ret += s->lie;
	return 0;
}

static uint64_t most(struct store *s, double wanted)
{
	uint64_t n = 99;

	memset(s->asked, 0, sizeof(s->asked));
	assert_int_equal(find_most(au, s, wanted, MOST, &n), 0);
	return n;
}

static void every_boundary_is_found(void **state)
{
	(void)state;
	for (uint64_t feeds = 0; feeds <= MOST + 3; feeds++) {
		struct store s = { .feeds = feeds };

		assert_int_equal(most(&s, 99.9), feeds < MOST ? feeds : MOST);
	}
}

static void the_share_counts(void **state)
{
	struct store s = { .feeds = 9 };

	(void)state;
	/* 9/10 is 90 %, 9/11 is 82 % */
	assert_int_equal(most(&s, 90), 10);
	assert_int_equal(most(&s, 80), 11);
	assert_int_equal(most(&s, 50), 18);
}

static void few_numbers_are_tried(void **state)
{
	struct store s = { .feeds = 13 };
	unsigned runs = 0;

	(void)state;
	most(&s, 99.9);
	for (size_t i = 0; i <= MOST; i++)
		runs += s.asked[i];
	/* 1 2 4 8 16, 12 14 13, and two more of 13 and of 14 */
	assert_int_equal(runs, 12);
	assert_int_equal(s.asked[13], FIND_RUNS);
	assert_int_equal(s.asked[14], FIND_RUNS);
}

static void one_noisy_run_does_not_move_it(void **state)
{
	(void)state;
	for (uint64_t feeds = 1; feeds <= 12; feeds++)
		for (uint64_t noisy = 1; noisy <= MOST; noisy++)
			for (int up = 0; up < 2; up++) {
				struct store s = { .feeds = feeds,
						   .noisy = noisy,
						   .lie = up ? 80 : -80 };

				assert_int_equal(most(&s, 99.9), feeds);
			}
}

static void an_error_ends_it(void **state)
{
	struct store s = { .feeds = 18, .fails = 8 };
	uint64_t n;

	(void)state;
	assert_int_equal(find_most(au, &s, 90, MOST, &n), -EIO);
	assert_int_equal(s.asked[16], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_boundary_is_found),
		cmocka_unit_test(the_share_counts),
		cmocka_unit_test(few_numbers_are_tried),
		cmocka_unit_test(one_noisy_run_does_not_move_it),
		cmocka_unit_test(an_error_ends_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
