/* SPDX-License-Identifier: MIT */
#include "tests/unit/test.h"

#include <string.h>

#include "common/json.h"
#include "runner/cell/run_profiles.h"
#include "runner/cell/run_tiers.h"

static struct run_tiers tiers_of(const char *fs)
{
	json_auto_t *j = json_loads(fs, 0, NULL);
	json_auto_t *defaults = json_pack("{s:{s:s, s:s}}", "fs",
					  "cache_policy", "lru", "cache_size",
					  "auto");
	struct workload w = { .defaults = defaults };
	struct run_tiers t;

	assert_non_null(j);
	assert_int_equal(run_tiers_of(&w, j, &t), 0);
	return t;
}

static void a_policy_and_a_size_are_a_tier(void **state)
{
	struct run_tiers t = tiers_of("{\"cache_size\": \"20%\"}");

	(void)state;
	assert_int_equal(t.n, 1);
	assert_string_equal(t.v[0].policy, "lru");
	assert_null(t.v[0].storage);
	assert_true(t.v[0].size.fraction == .2);
	run_tiers_fini(&t);
}

static void tiers_are_a_list_or_a_text(void **state)
{
	static const char *const same[] = {
		"{\"tier\": \"dram:minio:10%  ./a:b.yaml:fifo:8G\"}",
		"{\"tier\": [\"minio:10%\", \"./a:b.yaml:fifo:8G\"]}",
		"{\"tier\": [\"minio:10% nonsense ./a:b.yaml:fifo:8G\"]}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
		struct run_tiers t = tiers_of(same[i]);

		assert_int_equal(t.n, 2);
		assert_string_equal(t.v[0].policy, "minio");
		assert_null(t.v[0].storage);
		assert_string_equal(t.v[1].policy, "fifo");
		assert_string_equal(t.v[1].storage, "./a:b.yaml");
		assert_int_equal(t.v[1].size.bytes, 8 * GIB);
		run_tiers_fini(&t);
	}
}

static void policies_keep_their_options(void **state)
{
	struct run_tiers t =
		tiers_of("{\"tier\": \"nvme:slru:protected=0.5:50% none:1G\"}");

	(void)state;
	assert_int_equal(t.n, 2);
	assert_string_equal(t.v[0].storage, "nvme");
	assert_string_equal(t.v[0].policy, "slru:protected=0.5");
	assert_true(t.v[0].size.fraction == .5);
	run_tiers_fini(&t);
	t = tiers_of("{\"cache_policy\": \"s3fifo:small=0.2,uses=7\", "
		     "\"cache_size\": \"1G\"}");
	assert_int_equal(t.n, 1);
	assert_null(t.v[0].storage);
	assert_string_equal(t.v[0].policy, "s3fifo:small=0.2,uses=7");
	run_tiers_fini(&t);
}

/* The storage profiles of tiers belong to the record of a cell and its hash. */
static void profiles_of_tiers_are_noted(void **state)
{
	static const char text[] =
		"name: w\nquestion: Why?\n"
		"dataset: {dataset: imagenet, files: 3}\n"
		"base: {fs: {storage: hdd}, train: {gpu: v100}}\n"
		"axes: {fs.tier: [\"lru:1G nvme:lru:5G\", sata-ssd:lru:1G]}\n";
	json_auto_t *defaults = json_object();
	struct workload w;
	struct err err = { 0 };
	struct cell cell;

	(void)state;
	assert_int_equal(workload_parse(text, strlen(text), "w.yaml", &w, &err),
			 0);
	if (profiles_collect(&w, defaults, &err) < 0)
		fail_msg("%s", err.text);
	assert_non_null(json_object_get(w.profiles, "storage/nvme"));
	assert_non_null(json_object_get(w.profiles, "storage/sata-ssd"));
	assert_int_equal(workload_cell(&w, 0, true, &cell), 0);
	json_auto_t *of = profiles_of(&w, &cell, true);

	assert_non_null(json_object_get(of, "storage/hdd"));
	assert_non_null(json_object_get(of, "storage/nvme"));
	assert_null(json_object_get(of, "storage/sata-ssd"));
	cell_free(&cell);
	workload_free(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_policy_and_a_size_are_a_tier),
		cmocka_unit_test(tiers_are_a_list_or_a_text),
		cmocka_unit_test(policies_keep_their_options),
		cmocka_unit_test(profiles_of_tiers_are_noted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
