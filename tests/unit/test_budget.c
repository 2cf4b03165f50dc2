/* SPDX-License-Identifier: MIT */
/* The bounds of fs/server/budget.h, and that waiters continue in order. */
#include "tests/unit/test.h"

#include <pthread.h>

#include "common/util.h"
#include "fs/server/budget.h"

static void objects_have_the_cache_and_half(void **state)
{
	struct budget b;

	(void)state;
	budget_init(&b, 100);
	budget_set_capacity(&b, 1000);
	assert_int_equal(budget_limit(&b), 1100);
	assert_true(budget_take(&b, 1050));
	assert_false(budget_take(&b, 1));
	assert_int_equal(budget_lacks(&b, 30), 30);
	budget_give(&b, 20);
	assert_int_equal(budget_lacks(&b, 30), 10);
	assert_true(budget_take(&b, 20));
	budget_set_capacity(&b, 0);
	assert_false(budget_take(&b, 1));
	budget_give(&b, 1050);
	assert_int_equal(b.objects, 0);
	budget_fini(&b);
}

static void answers_wait_in_order(void **state)
{
	struct budget_wait w[5] = { { 30 }, { 20 }, { 10 }, { 5 }, { 900 } };
	struct budget_wait *list;
	struct budget b;

	(void)state;
	budget_init(&b, 100);
	assert_ptr_equal(budget_answer(&b, &w[0]), &w[0]);
	assert_ptr_equal(budget_answer(&b, &w[1]), &w[1]);
	assert_null(budget_answer(&b, &w[2]));
	assert_null(budget_answer(&b, &w[3])); /* small, but not the first */
	assert_null(budget_answer(&b, &w[4]));
	list = budget_answered(&b, &w[1]);
	assert_ptr_equal(list, &w[2]);
	assert_ptr_equal(list->next, &w[3]);
	assert_null(list->next->next);
	assert_null(budget_answered(&b, &w[2]));
	assert_null(budget_answered(&b, &w[3]));
	/* more than the budget: alone */
	assert_ptr_equal(budget_answered(&b, &w[0]), &w[4]);
	assert_null(budget_answer(&b, &w[0]));
	assert_ptr_equal(budget_stop(&b), &w[0]);
	assert_ptr_equal(budget_answer(&b, &w[1]), &w[1]);
	assert_null(budget_answered(&b, &w[1]));
	assert_null(budget_answered(&b, &w[4]));
	assert_int_equal(b.answers, 0);
	budget_fini(&b);
}

enum { THREADS = 4, TURNS = 50000 };

struct shared {
	struct budget b;
	uint64_t n_done;
};

struct waiter {
	struct budget_wait room;
	bool goes_on; /* atomic */
};

static void let(struct budget_wait *w)
{
	while (w) {
		struct budget_wait *next = w->next;

		__atomic_store_n(&container_of(w, struct waiter, room)->goes_on,
				 true, __ATOMIC_RELEASE);
		w = next;
	}
}

static void *take_turns(void *arg)
{
	struct shared *s = arg;

	for (int i = 0; i < TURNS; i++) {
		struct waiter w = { .room.bytes = 1 + (size_t)i % 7 };

		let(budget_answer(&s->b, &w.room));
		while (!__atomic_load_n(&w.goes_on, __ATOMIC_ACQUIRE))
			sched_yield();
		let(budget_answered(&s->b, &w.room));
		__atomic_fetch_add(&s->n_done, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* A lost wake-up shows as a hanging test. */
static void nobody_is_forgotten(void **state)
{
	struct shared s = { .n_done = 0 };
	pthread_t threads[THREADS];

	(void)state;
	budget_init(&s.b, 16);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, take_turns, &s), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(s.n_done, THREADS * TURNS);
	assert_int_equal(s.b.answers, 0);
	assert_int_equal(s.b.n_waiting, 0);
	budget_fini(&s.b);
}

/* Wait for free budget. */
static void *ask_in_vain(void *arg)
{
	while (!budget_take(arg, 1000))
		;
	return NULL;
}

/* The counts never exceed the bounds. */
static void what_is_refused_is_never_counted(void **state)
{
	pthread_t thread;
	struct budget b;

	(void)state;
	budget_init(&b, 100);
	assert_int_equal(pthread_create(&thread, NULL, ask_in_vain, &b), 0);
	for (int i = 0; i < 20 * TURNS; i++)
		assert_int_equal(__atomic_load_n(&b.objects, __ATOMIC_RELAXED),
				 0);
	budget_set_capacity(&b, 1000);
	pthread_join(thread, NULL);
	assert_int_equal(b.objects, 1000);
	budget_fini(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(objects_have_the_cache_and_half),
		cmocka_unit_test(answers_wait_in_order),
		cmocka_unit_test(nobody_is_forgotten),
		cmocka_unit_test(what_is_refused_is_never_counted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
