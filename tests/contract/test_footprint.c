/* SPDX-License-Identifier: MIT */
/*
 * --cache-metadata counts the memory of a cached object: with every policy, by
 * the kernel's statistics.
 */
#include "tests/unit/test.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "fs/cache/cache.h"
#include "fs/server/object.h"

/* so many that a huge page more or less does not matter */
enum { N = 300000, BYTES = 200 };

static void drop(void *user, void *ctx)
{
	(void)ctx;
	object_put(user);
}

static struct cache *new_cache(const struct policy_ops *ops)
{
	_cleanup_free_ uint64_t *sizes = calloc(2 * N, sizeof(*sizes));
	struct policy_params params = { .capacity_bytes = (uint64_t)N * BYTES,
					.file_bytes = sizes,
					.n_files = 2 * N,
					.max_object_bytes = OBJECT_EXTENT,
					.count_metadata = true,
					.overhead_bytes = OBJECT_OVERHEAD };
	struct cache *c;

	for (size_t i = 0; i < 2 * N; i++)
		sizes[i] = BYTES;
	assert_int_equal(
		cache_new(ops, &params, drop, NULL, &c, &(struct err){ 0 }), 0);
	return c;
}

static struct object *filled(struct budget *budget, uint32_t node)
{
	struct object *o = object_new(NULL, node, 0, BYTES, 0);

	assert_true(object_fill(o, budget));
	return o;
}

/* Each object twice, so that ghosts and lists fill up as well. */
static void fill(struct cache *c, struct budget *budget)
{
	for (uint32_t pass = 0; pass < 2; pass++) {
		for (uint32_t i = 0; i < 2 * N; i++) {
			struct cache_object o = { .key = object_key(i, 0),
						  .bytes = BYTES,
						  .file_bytes = BYTES };
			struct cache_entry *e;

			cache_access(c, &o, &e);
			if (e && !cache_user(e))
				cache_set_user(e, filled(budget, i));
		}
	}
}

/* Memory of this process that backs no file, without what is free. */
static size_t memory(void)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/self/smaps_rollup", "r");
	size_t kib = 0;
	char line[256];

	assert_non_null(f);
	malloc_trim(0);
	while (!kib && fgets(line, sizeof(line), f))
		sscanf(line, "Anonymous: %zu kB", &kib);
	assert_true(kib > 0);
	return kib << 10;
}

static void the_memory_holds_what_is_counted(void **state)
{
	(void)state;
	if (!mallinfo2().uordblks)
		skip_because("a sanitizer has another allocator");
	for (size_t p = 0; policy_table[p]; p++) {
		const struct policy_ops *ops = container_of(
			policy_table[p], const struct policy_ops, plugin);
		size_t before = memory();
		double counted, taken;
		struct budget budget;
		struct cache *c;

		if (ops->offline || ops->bypass)
			continue;
		c = new_cache(ops);
		budget_init(&budget, 2 * N * BYTES);
		fill(c, &budget);
		counted = (double)cache_used(c);
		taken = (double)(memory() - before);
		print_message("%-10s %6d objects, counted %.0f KiB, taken %.0f "
			      "KiB\n",
			      policy_table[p]->name, (int)cache_objects(c),
			      counted / 1024, taken / 1024);
		assert_true(cache_used(c) <= cache_capacity(c));
		assert_true(cache_objects(c) > N / 4);
		/* index and arrays double, so they are up to half empty */
		assert_true(taken > .9 * counted && taken < 1.1 * counted);
		assert_int_equal(budget.objects, BYTES * cache_objects(c));
		cache_free(c);
		assert_int_equal(budget.objects, 0);
		budget_fini(&budget);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_memory_holds_what_is_counted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
