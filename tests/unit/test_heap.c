/* SPDX-License-Identifier: MIT */
#include "common/heap.h"

#include "common/rng.h"
#include "tests/unit/test.h"

enum { N = 1000 };

struct job {
	unsigned priority, number;
};

static size_t place[N]; /* by number */

static bool before(const struct job *a, const struct job *b)
{
	return a->priority < b->priority;
}

static void placed(const struct job *job, size_t i)
{
	place[job->number] = i;
}

DEFINE_HEAP(jobs, struct job, before, placed)

static void check(const struct job *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(place[v[i].number], i);
		assert_false(i && before(&v[i], &v[(i - 1) / HEAP_CHILDREN]));
	}
}

static size_t fill(struct job *v, struct rng *rng)
{
	for (unsigned i = 0; i < N; i++) {
		/* some are equal */
		v[i] = (struct job){ (unsigned)rng_below(rng, N / 4), i };
		jobs_up(v, i);
	}
	check(v, N);
	return N;
}

static void items_leave_in_order(void **state)
{
	struct rng rng = rng_stream(1, "heap", 0);
	struct job v[N];
	size_t n = fill(v, &rng);
	unsigned last = 0;

	(void)state;
	while (n) {
		assert_true(v[0].priority >= last);
		last = v[0].priority;
		v[0] = v[--n];
		jobs_fix(v, n, 0);
		check(v, n);
	}
}

static void any_item_may_change_or_leave(void **state)
{
	struct rng rng = rng_stream(2, "heap", 0);
	struct job v[N];
	size_t n = fill(v, &rng);

	(void)state;
	while (n) {
		size_t i = rng_below(&rng, n);

		v[i].priority = (unsigned)rng_below(&rng, N / 4);
		jobs_fix(v, n, i);
		check(v, n);
		i = rng_below(&rng, n);
		v[i] = v[--n]; /* it may be the last itself */
		jobs_fix(v, n, i);
		check(v, n);
	}
}

/* The heap of times, as k servers use it: the earliest is next. */
static void the_earliest_time_is_first(void **state)
{
	uint64_t v[7] = { 0 }, now = 0;

	(void)state;
	for (uint64_t i = 0; i < N; i++) {
		assert_true(v[0] >= now);
		now = v[0];
		v[0] = now + 7 + i % 3;
		heap_times_down(v, ARRAY_SIZE(v), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(items_leave_in_order),
		cmocka_unit_test(any_item_may_change_or_leave),
		cmocka_unit_test(the_earliest_time_is_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
