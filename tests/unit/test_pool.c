/* SPDX-License-Identifier: MIT */
#include "tests/unit/test.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "common/pool.h"
#include "common/tick.h"

enum { N = 1000 };

struct counts {
	atomic_uint worked[N];
	size_t taken; /* in order, one at a time: no lock */
	size_t fail_work, fail_take;
};

static int work(void *ctx, void *state, size_t i, struct err *err)
{
	struct counts *c = ctx;

	(void)state;
	atomic_fetch_add(&c->worked[i], 1);
	/* some items take longer, so that others overtake them */
	if (i % 97 == 0)
		tick_pause(100000);
	/* two fail, usually the later one first */
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

static void the_first_failure_is_reported(void **state)
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

/* --- what a thread has for itself ----------------------------------------- */

struct own {
	unsigned begun, worked;
};

struct threads {
	atomic_uint begun, ended, worked;
	unsigned fail_init; /* the init of that number; 0: none */
};

static int begin(void *ctx, void *state, struct err *err)
{
	struct threads *t = ctx;
	struct own *o = state;

	/* zeroed, and private */
	assert_int_equal(o->begun++, 0);
	return atomic_fetch_add(&t->begun, 1) + 1 == t->fail_init
		       ? err_set(err, -ENOSPC, "no room")
		       : 0;
}

static int own_work(void *ctx, void *state, size_t i, struct err *err)
{
	struct own *o = state;

	(void)ctx;
	(void)i;
	(void)err;
	assert_int_equal(o->begun, 1);
	o->worked++;
	tick_pause(1000);
	return 0;
}

static void finish(void *ctx, void *state)
{
	struct threads *t = ctx;
	struct own *o = state;

	atomic_fetch_add(&t->worked, o->worked);
	atomic_fetch_add(&t->ended, 1);
}

static void a_thread_has_a_state_of_its_own(void **state)
{
	(void)state;
	for (unsigned threads = 1; threads < 9; threads++) {
		struct threads t = { 0 };
		struct pool p = { .n = N,
				  .threads = threads,
				  .ctx = &t,
				  .state_bytes = sizeof(struct own),
				  .init = begin,
				  .fini = finish,
				  .work = own_work };
		struct err err = { 0 };

		assert_int_equal(pool_run(&p, NULL), 0);
		assert_int_equal(t.begun, threads);
		assert_int_equal(t.ended, threads);
		assert_int_equal(t.worked, N);
		/* a failing init ends the pool, and its fini runs */
		t = (struct threads){ .fail_init = 1 };
		assert_int_equal(pool_run(&p, &err), -ENOSPC);
		assert_string_equal(err.text, "no room");
		assert_int_equal(t.ended, t.begun);
	}
}

/* --- progress and cancelling ---------------------------------------------- */

struct watched {
	size_t n_done; /* one call at a time: no lock */
	size_t cancel_at;
	atomic_int cancel;
	atomic_size_t n_begun;
};

static int watched_work(void *ctx, void *state, size_t i, struct err *err)
{
	struct watched *w = ctx;

	(void)state;
	(void)i;
	(void)err;
	atomic_fetch_add(&w->n_begun, 1);
	return 0;
}

static void watch(void *ctx, size_t n_done)
{
	struct watched *w = ctx;

	assert_int_equal(n_done, ++w->n_done);
	if (n_done == w->cancel_at)
		atomic_store(&w->cancel, -EINTR);
}

static void progress_counts_and_a_cancel_ends(void **state)
{
	(void)state;
	for (unsigned threads = 1; threads < 9; threads++) {
		struct watched w = { 0 };
		struct pool p = { .n = N,
				  .threads = threads,
				  .ctx = &w,
				  .work = watched_work,
				  .progress = watch,
				  .cancel = (const int *)&w.cancel };
		struct err err = { 0 };

		assert_int_equal(pool_run(&p, NULL), 0);
		assert_int_equal(w.n_done, N);
		/* a thread completes the item it has begun, none begins
		 * another */
		w = (struct watched){ .cancel_at = 100 };
		assert_int_equal(pool_run(&p, &err), -EINTR);
		assert_string_equal(err.text, "interrupted");
		assert_int_equal(w.n_begun, w.n_done);
		assert_in_range(w.n_done, 100, 100 + threads - 1);
		/* too late: all items are complete */
		w = (struct watched){ .cancel_at = N };
		assert_int_equal(pool_run(&p, NULL), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_items_once_and_in_order),
		cmocka_unit_test(the_first_failure_is_reported),
		cmocka_unit_test(a_thread_has_a_state_of_its_own),
		cmocka_unit_test(progress_counts_and_a_cancel_ends),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
