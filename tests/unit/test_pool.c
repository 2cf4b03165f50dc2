/* SPDX-License-Identifier: MIT */
#include "tests/unit/test.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "common/tick.h"
#include "loader/dataset/pool.h"

enum { N = 1000 };

struct counts {
	atomic_uint worked[N];
	size_t taken; /* in order, one at a time: no lock */
	size_t fail_work, fail_take;
};

static int work(void *ctx, size_t i, struct err *err)
{
	struct counts *c = ctx;

	atomic_fetch_add(&c->worked[i], 1);
	/* some take longer, so that others overtake them */
	if (i % 97 == 0)
		tick_pause(100000);
	/* two fail, the later one as a rule first */
	if (i == c->fail_work || i == c->fail_work + 1)
		return err_set(err, -EIO, "item %zu", i);
	return 0;
}

static int take(void *ctx, size_t i, struct err *err)
{
	struct counts *c = ctx;

	assert_int_equal(atomic_load(&c->worked[i]), 1);
	if (i == c->fail_take)
		return err_set(err, -ENOSPC, "taking %zu", i);
	assert_int_equal(c->taken++, i);
	return 0;
}

static int run(struct counts *c, size_t n, unsigned threads, struct err *err)
{
	struct pool p = {
		.n = n, .threads = threads, .ctx = c, .work = work, .take = take
	};

	return pool_run(&p, err);
}

static void all_items_once_and_in_order(void **state)
{
	(void)state;
	for (unsigned threads = 0; threads < 9; threads++) {
		struct counts c = { .fail_work = N, .fail_take = N };

		assert_int_equal(run(&c, N, threads, NULL), 0);
		assert_int_equal(c.taken, N);
		for (size_t i = 0; i < N; i++)
			assert_int_equal(c.worked[i], 1);
		assert_int_equal(run(&c, 0, threads, NULL), 0);
	}
}

static void the_first_failure_is_told(void **state)
{
	(void)state;
	for (unsigned threads = 1; threads < 9; threads++) {
		/* the failure is among the slow ones */
		struct counts c = { .fail_work = 97 * 3, .fail_take = N };
		struct err err = { 0 };

		assert_int_equal(run(&c, N, threads, &err), -EIO);
		assert_string_equal(err.text, "item 291");
		assert_int_equal(c.taken, 291);
		c = (struct counts){ .fail_work = N, .fail_take = 5 };
		err = (struct err){ 0 };
		assert_int_equal(run(&c, N, threads, &err), -ENOSPC);
		assert_string_equal(err.text, "taking 5");
		assert_int_equal(c.taken, 5);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_items_once_and_in_order),
		cmocka_unit_test(the_first_failure_is_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
