/* SPDX-License-Identifier: MIT */
/*
 * The file server without FUSE: every policy, many readers, control commands
 * in between.
 */
#include "tests/contract/files_rig.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/util.h"
#include "fs/control/ctl.h"

static void every_policy_serves_every_byte(void **state)
{
	struct reader readers[N_THREADS];

	for (size_t p = 0; policy_table[p]; p++) {
		struct server *s;

		if (files_is_offline(policy_table[p]))
			continue;
		s = files_start(*state, policy_table[p]->name, "ideal");

		files_run_readers(*state, s, readers);
		files_join_readers(readers);
		assert_true(files_stat(s, "used_bytes") <=
			    files_stat(s, "capacity_bytes"));
		assert_int_equal(files_stat(s, "inflight"), 0);
		assert_true(files_stat(s, "misses") > 0);
		server_free(s);
	}
}

static void control_may_come_at_any_time(void **state)
{
	files_change_while_read(*state);
}

static void what_is_pending_at_the_end_is_answered(void **state)
{
	files_end_with_reads_pending(*state, files_start(*state, "lru", "hdd"));
}

static void commands_after_the_end_are_refused(void **state)
{
	struct server *s = files_start(*state, "lru", "ideal");
	struct units_capacity size = { .fraction = 1 };
	struct err err = { 0 };

	server_stop(s);
	assert_int_equal(server_epoch(s, &err), -ECONNABORTED);
	assert_string_equal(err.text, "the mount is shutting down");
	assert_int_equal(server_reset(s, NULL), -ECONNABORTED);
	assert_int_equal(server_drop_cache(s, NULL), -ECONNABORTED);
	assert_int_equal(server_set_cache(s, "fifo", &size, NULL),
			 -ECONNABORTED);
	assert_int_equal(server_set_storage(s, "nvme", NULL), -ECONNABORTED);
	assert_int_equal(server_fault_add(s, "stuck", NULL), -ECONNABORTED);
	assert_int_equal(server_fault_clear(s, 0, NULL), -ECONNABORTED);
	assert_int_equal(files_stat(s, "inflight"), 0);
	server_free(s);
}

static void a_new_cache_keeps_the_counts(void **state)
{
	struct fixture *f = *state;
	struct server *s = files_start(f, "lru", "ideal");
	struct units_capacity size = { .fraction = 1 };
	unsigned char *buf = malloc(60000);
	struct err err = { 0 };

	for (int i = 0; i < 4; i++) {
		struct handle *h = server_open(s, f->node[2]);

		assert_int_equal(files_read(f, s, h, buf, 60000, 0),
				 f->bytes[2]);
		server_close(s, h);
		if (i == 1)
			assert_int_equal(
				server_set_cache(s, "fifo", &size, &err), 0);
	}
	assert_int_equal(files_stat(s, "hits"), 2);
	assert_int_equal(files_stat(s, "misses"), 2);
	assert_int_equal(files_stat(s, "miss_bytes"),
			 files_stat(s, "backend_bytes"));
	assert_int_equal(files_stat(s, "epoch"), 1);
	assert_int_equal(server_reset(s, NULL), 0);
	assert_int_equal(files_stat(s, "hits") + files_stat(s, "misses"), 0);
	free(buf);
	server_free(s);
}

static void a_file_has_no_more_extents_than_are_counted(void **state)
{
	struct tree_child large = { .name = (char *)"x",
				    .bytes = TREE_MOST_BYTES,
				    .mode = S_IFREG | 0444 };
	struct tree t;

	(void)state;
	assert_true(TREE_MOST_BYTES / OBJECT_EXTENT < UINT32_MAX);
	assert_int_equal(tree_init(&t), 0);
	assert_int_equal(tree_add_children(&t, TREE_ROOT, &large, 1), 0);
	large.bytes++;
	assert_int_equal(tree_add_children(&t, TREE_ROOT, &large, 1), -EFBIG);
	tree_fini(&t);
}

/* --- control commands --------------------------------------------------- */

static void commands_are_checked(void **state)
{
	static const char *const bad[] = { "set",
					   "set storage",
					   "set a b",
					   "epoch now",
					   "reset\nbogus",
					   "set storage nope",
					   "set cache_size 5Q" };
	struct server *s = files_start(*state, "lru", "ideal");
	char *storage = strdup("ideal"), *policy = strdup("lru");
	struct units_capacity size = { .fraction = .35 };
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct ctl ctl = { .server = s,
			   .storage = &storage,
			   .cache_policy = &policy,
			   .cache_size = &size,
			   .lock = &lock };
	struct err err = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		err = (struct err){ 0 };
		assert_true(ctl_command(&ctl, bad[i], strlen(bad[i]), &err) <
			    0);
		assert_true(err.text[0]);
	}
	assert_int_equal(ctl_command(&ctl, "a\0b", 3, &err), -EINVAL);
	assert_int_equal(ctl_command(&ctl, "", 0, &err), 0);
	assert_int_equal(ctl_command(&ctl, "\n \nset cache_size 1M\nepoch", 26,
				     &err),
			 0);
	assert_int_equal(size.bytes, MIB);
	assert_int_equal(files_stat(s, "capacity_bytes"), MIB);
	server_free(s);
	free(storage);
	free(policy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_policy_serves_every_byte),
		cmocka_unit_test(control_may_come_at_any_time),
		cmocka_unit_test(what_is_pending_at_the_end_is_answered),
		cmocka_unit_test(commands_after_the_end_are_refused),
		cmocka_unit_test(a_new_cache_keeps_the_counts),
		cmocka_unit_test(a_file_has_no_more_extents_than_are_counted),
		cmocka_unit_test(commands_are_checked),
	};
	return cmocka_run_group_tests(tests, files_setup, files_teardown);
}
