/* SPDX-License-Identifier: MIT */
/* What holds for every registered order, and what each promises. */
#include "tests/unit/test.h"

#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "loader/order.h"

enum { N = 1009 };

static const struct order_ops *order(const char *name)
{
	const struct plugin *p = plugin_find(order_table, "order", name, NULL);

	assert_non_null(p);
	return container_of(p, struct order_ops, plugin);
}

static void fill(const struct order_ops *o, uint64_t seed, uint64_t epoch,
		 size_t n, uint32_t *ret)
{
	struct order_input in = {
		.seed = seed, .epoch = epoch, .n = n, .window = 1
	};
	struct err err = { 0 };

	if (o->fill(&in, ret, &err) < 0)
		fail_msg("%s", err.text);
}

static void assert_permutation(const uint32_t *v, size_t n)
{
	_cleanup_free_ char *seen = calloc(n + 1, 1);

	for (size_t i = 0; i < n; i++) {
		assert_true(v[i] < n);
		assert_false(seen[v[i]]);
		seen[v[i]] = 1;
	}
}

static void each_sample_once_an_epoch(void **state)
{
	static const size_t sizes[] = { 1, 2, N };
	uint32_t v[N];

	(void)state;
	for (size_t p = 0; order_table[p]; p++) {
		const struct order_ops *o =
			container_of(order_table[p], struct order_ops, plugin);

		for (size_t s = 0; s < ARRAY_SIZE(sizes); s++)
			for (uint64_t epoch = 0; epoch < 3; epoch++) {
				memset(v, 0xff, sizeof(v));
				fill(o, 7, epoch, sizes[s], v);
				assert_permutation(v, sizes[s]);
				/* nothing behind the end is written */
				assert_true(sizes[s] == N ||
					    v[sizes[s]] == UINT32_MAX);
			}
	}
}

static void the_same_seed_gives_the_same_order(void **state)
{
	uint32_t a[N], b[N];

	(void)state;
	for (size_t p = 0; order_table[p]; p++) {
		const struct order_ops *o =
			container_of(order_table[p], struct order_ops, plugin);

		fill(o, 42, 3, N, a);
		fill(o, 42, 3, N, b);
		assert_memory_equal(a, b, sizeof(a));
	}
}

static void shuffle_depends_on_seed_and_epoch(void **state)
{
	const struct order_ops *o = order("shuffle");
	uint32_t a[N], b[N];
	size_t fixed = 0;

	(void)state;
	fill(o, 42, 0, N, a);
	fill(o, 42, 1, N, b);
	assert_memory_not_equal(a, b, sizeof(a));
	fill(o, 43, 0, N, b);
	assert_memory_not_equal(a, b, sizeof(a));
	for (size_t i = 0; i < N; i++)
		fixed += a[i] == i;
	/* one is expected; ten or more happen once in 10 million seeds */
	assert_true(fixed < 10);
}

static void sequential_is_in_order(void **state)
{
	uint32_t v[N];

	(void)state;
	fill(order("sequential"), 1, 5, N, v);
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(v[i], i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_sample_once_an_epoch),
		cmocka_unit_test(the_same_seed_gives_the_same_order),
		cmocka_unit_test(shuffle_depends_on_seed_and_epoch),
		cmocka_unit_test(sequential_is_in_order),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
