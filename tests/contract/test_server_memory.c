/* SPDX-License-Identifier: MIT */
/* The file server with little memory besides its cache. */
#include "tests/contract/files_rig.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/units.h"
#include "common/util.h"

static void no_memory_is_as_good_as_much(void **state)
{
	static const char *const policies[] = { "none", "minio", "lru" };
	struct reader readers[N_THREADS];
	struct fixture *f = *state;

	for (size_t p = 0; p < ARRAY_SIZE(policies); p++) {
		struct server *s;

		f->memory = p ? 300 * KIB : 1;
		s = files_start(f, policies[p], "ideal");
		files_run_readers(f, s, readers);
		files_join_readers(readers);
		/* the bytes of an answer are freed shortly after the reply */
		while (files_stat(s, "memory_bytes") >
		       files_stat(s, "memory_limit_bytes"))
			sched_yield();
		assert_int_equal(files_stat(s, "held_bytes"), 0);
		assert_true(!p || files_stat(s, "reread_bytes") > 0);
		assert_int_equal(server_drop_cache(s, NULL), 0);
		while (files_stat(s, "memory_bytes"))
			sched_yield();
		assert_int_equal(files_stat(s, "inflight_bytes"), 0);
		server_free(s);
		files_end_with_reads_pending(f, files_start(f, policies[p],
							    "hdd"));
	}
	f->memory = 1;
	files_end_with_reads_pending(f, files_start_grouped(f, "lru", "hdd",
							    NULL, 0, 0));
	f->memory = 300 * KIB;
	files_change_while_read(f);
	f->memory = 0;
}

/* Once the device has read an object, its chunks cost no second read, although
 * the object was evicted. */
static void what_was_paid_for_is_read_again(void **state)
{
	struct fixture *f = *state;
	unsigned char buf[1000];
	struct server *s;
	struct handle *h;

	f->memory = 1;
	s = files_start_grouped(f, "lru", "ideal", NULL, 0, 0);
	h = server_open(s, f->node[1]);
	for (size_t at = 0; at < OBJECT_EXTENT; at += OBJECT_EXTENT / 8) {
		assert_int_equal(files_read(f, s, h, buf, sizeof(buf), at),
				 sizeof(buf));
		assert_memory_equal(buf, f->content[1] + at, sizeof(buf));
		assert_int_equal(files_stat(s, "backend_reads"), 1);
	}
	assert_int_equal(files_stat(s, "misses"), 1);
	assert_int_equal(files_stat(s, "reread_bytes"), 8 * sizeof(buf));
	server_close(s, h);
	server_free(s);
	f->memory = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_memory_is_as_good_as_much),
		cmocka_unit_test(what_was_paid_for_is_read_again),
	};
	return cmocka_run_group_tests(tests, files_setup, files_teardown);
}
