/* SPDX-License-Identifier: MIT */
/* The file server when one read of the device fetches a group of files. */
#include "tests/contract/files_rig.h"

#include <stdlib.h>
#include <string.h>

#include "common/util.h"

static struct group_map *group(struct fixture *f, uint32_t size,
			       const char *order)
{
	struct err err = { 0 };
	struct group_map *m;

	if (group_map_new(&f->tree, size, order, 1, &m, &err) < 0)
		fail_msg("%s", err.text);
	return m;
}

static void every_policy_serves_every_byte_in_groups(void **state)
{
	static const char *const orders[] = { "sequential", "random",
					      "diffclass" };
	struct reader readers[N_THREADS];

	for (size_t p = 0; policy_table[p]; p++) {
		if (files_is_offline(policy_table[p]))
			continue;
		struct group_map *m =
			group(*state, p % 2 ? 7 : 100, orders[p % 3]);
		/* so small that a group does not fit, and its buffer overflows
		 */
		bool tight = p / 2 % 2;
		struct server *s = files_start_grouped(
			*state, policy_table[p]->name, "ideal", m,
			tight ? .02 : .35, tight ? 100000 : 0);

		files_run_readers(*state, s, readers);
		for (int i = 0; i < 20; i++) {
			assert_int_equal(server_drop_cache(s, NULL), 0);
			assert_true(files_stat(s, "used_bytes") <=
				    files_stat(s, "capacity_bytes"));
		}
		files_join_readers(readers);
		assert_int_equal(files_stat(s, "inflight"), 0);
		assert_true(files_stat(s, "group_hits") > 0);
		server_free(s);
		group_map_free(m);
	}
}

/* Read all files that are in groups, group by group. */
static void read_groups(struct fixture *f, struct server *s,
			const struct group_map *m)
{
	unsigned char *buf = malloc(70000);

	for (uint32_t k = 0; k < m->groups.n_files; k++) {
		uint32_t node = m->groups.file[k];
		struct handle *h = server_open(s, node);
		int i = 0;

		while (f->node[i] != node)
			i++;
		if (f->bytes[i] < 70000) {
			assert_int_equal(files_read(f, s, h, buf, 70000, 0),
					 f->bytes[i]);
			assert_memory_equal(buf, f->content[i], f->bytes[i]);
		}
		server_close(s, h);
	}
	free(buf);
}

/* Files 2.. in groups of 8: 39 with the empty file, plus the large one. */
enum { GROUPS_OF_8 = 5 };

static void one_read_brings_a_group(void **state)
{
	struct fixture *f = *state;

	for (size_t p = 0; policy_table[p]; p++) {
		if (files_is_offline(policy_table[p]))
			continue;
		struct group_map *m = group(f, 8, "random");
		struct server *s = files_start_grouped(f, policy_table[p]->name,
						       "ideal", m, .01, 0);
		uint64_t bytes = 0;

		for (int i = 2; i < N_FILES; i++)
			bytes += f->bytes[i];
		assert_int_equal(m->groups.n_groups, GROUPS_OF_8 + 1);
		read_groups(f, s, m);
		/* whatever the cache admits: nothing is read twice */
		assert_int_equal(files_stat(s, "backend_reads"), GROUPS_OF_8);
		assert_int_equal(files_stat(s, "backend_bytes"), bytes);
		assert_int_equal(files_stat(s, "misses"), GROUPS_OF_8);
		assert_int_equal(files_stat(s, "hits"), 38 - GROUPS_OF_8);
		assert_int_equal(files_stat(s, "group_hits"), 38 - GROUPS_OF_8);
		assert_int_equal(files_stat(s, "group_hit_bytes") +
					 files_stat(s, "miss_bytes"),
				 bytes);
		assert_int_equal(files_stat(s, "group_buffer_bytes"), 0);
		server_free(s);
		group_map_free(m);
	}
}

static void a_whole_group_is_charged_each_time(void **state)
{
	struct fixture *f = *state;
	struct group_map *m = group(f, 8, "sequential");
	/* no cache, and a buffer that holds nothing */
	struct server *s = files_start_grouped(f, "none", "ideal", m, 0, 1);
	uint64_t bytes = 0;
	unsigned char *buf = malloc(70000);

	for (int i = 0; i < 8; i++) { /* f01 is large, and not among them */
		int k = i ? i + 1 : 0;
		struct handle *h = server_open(s, f->node[k]);

		bytes += f->bytes[k];
		assert_int_equal(files_read(f, s, h, buf, 70000, 0),
				 f->bytes[k]);
		server_close(s, h);
	}
	/* the empty file is never read */
	assert_int_equal(files_stat(s, "backend_reads"), 7);
	assert_int_equal(files_stat(s, "backend_bytes"), 7 * bytes);
	assert_int_equal(files_stat(s, "misses"), 7);
	free(buf);
	server_free(s);
	group_map_free(m);
}

static void groups_pending_at_the_end_are_answered(void **state)
{
	struct group_map *m = group(*state, 8, "random");

	files_end_with_reads_pending(
		*state, files_start_grouped(*state, "lru", "hdd", m, .35, 0));
	group_map_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_policy_serves_every_byte_in_groups),
		cmocka_unit_test(one_read_brings_a_group),
		cmocka_unit_test(a_whole_group_is_charged_each_time),
		cmocka_unit_test(groups_pending_at_the_end_are_answered),
	};
	return cmocka_run_group_tests(tests, files_setup, files_teardown);
}
