/* SPDX-License-Identifier: MIT */
/* The server's hash tables without memory. */
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <setjmp.h>

#include <cmocka.h>

static bool no_memory;

static void *maybe(size_t n)
{
	return no_memory ? NULL : malloc(n);
}

#define uthash_malloc(n) maybe(n)
#include "fs/server/hash.h"

enum { N = 20000 };

struct item {
	uint64_t key;
	UT_hash_handle hh;
};

static void without_memory_the_table_stays_as_it_was(void **state)
{
	struct item *item = calloc(N, sizeof(*item)), *table = NULL, *found;
	unsigned refused = 0;

	(void)state;
	for (uint64_t i = 0; i < N; i++) {
		item[i].key = i * 7;
		no_memory = true;
		while (!HASH_TRY_ADD(table, key, &item[i])) {
			assert_int_equal(HASH_COUNT(table), i);
			refused++;
			no_memory = false;
		}
	}
	assert_true(refused > 1); /* the table, and what it grew by */
	assert_int_equal(HASH_COUNT(table), N);
	for (uint64_t i = 0; i < N; i++) {
		HASH_FIND(hh, table, &item[i].key, sizeof(uint64_t), found);
		assert_ptr_equal(found, &item[i]);
		HASH_DEL(table, found);
	}
	assert_null(table);
	free(item);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_memory_the_table_stays_as_it_was),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
