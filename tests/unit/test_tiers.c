/* SPDX-License-Identifier: MIT */
#include "tests/unit/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "fs/cache/tier.h"

/* A profile is called nvme, or is a path. */
static int check(const void *storage, struct err *err)
{
	const char *name = *(char *const *)storage;

	return !strcmp(name, "nvme") || strchr(name, '/')
		       ? 0
		       : err_set(err, -EINVAL, "unknown storage '%s'", name);
}

static struct tiers parse(const char *text, bool lists)
{
	struct tiers t = { 0 };
	struct err err = { 0 };

	if (tiers_parse(text, lists, check, &t, &err) < 0)
		fail_msg("%s: %s", text, err.text);
	return t;
}

static void one_tier(void **state)
{
	struct tiers t = parse("lru:35%", false);

	(void)state;
	assert_int_equal(t.n, 1);
	assert_null(t.v[0].storage);
	assert_string_equal(tier_storage(&t.v[0]), "dram");
	assert_int_equal(t.v[0].n_policies, 1);
	assert_string_equal(t.v[0].policies[0].choice.plugin->name, "lru");
	assert_true(t.v[0].sizes[0].fraction == .35);
	tiers_fini(&t);
	t = parse("dram:s3-fifo:8G", false);
	assert_null(t.v[0].storage);
	assert_string_equal(t.v[0].policies[0].choice.plugin->name, "s3fifo");
	assert_int_equal(t.v[0].sizes[0].bytes, 8 * GIB);
	tiers_fini(&t);
}

static void several_tiers_and_paths_with_colons(void **state)
{
	struct tiers t =
		parse("  minio:10%\tnvme:lru:50%  ./a:b.yaml:fifo:0 ", false);

	char *text;

	(void)state;
	assert_int_equal(t.n, 3);
	assert_null(t.v[0].storage);
	assert_string_equal(t.v[1].storage, "nvme");
	assert_string_equal(t.v[2].storage, "./a:b.yaml");
	assert_string_equal(t.v[2].policies[0].choice.plugin->name, "fifo");
	text = tier_text(&t.v[2]);
	assert_string_equal(text, "./a:b.yaml:fifo:0");
	free(text);
	/* further tiers follow those */
	assert_int_equal(tiers_parse("lru:1M", false, check, &t, NULL), 0);
	assert_int_equal(t.n, 4);
	tiers_fini(&t);
}

static void policies_with_options(void **state)
{
	struct tiers t = parse("nvme:slru:protected=0.5:50% "
			       "s3-fifo:small=0.2:1G ./a:b=c.yaml:lru:0",
			       false);
	char *text;

	(void)state;
	assert_int_equal(t.n, 3);
	assert_string_equal(t.v[0].storage, "nvme");
	assert_string_equal(t.v[0].policies[0].text, "slru:protected=0.5");
	assert_true(t.v[0].sizes[0].fraction == .5);
	text = tier_text(&t.v[0]);
	assert_string_equal(text, "nvme:slru:protected=0.5:50%");
	free(text);
	assert_null(t.v[1].storage);
	assert_string_equal(t.v[1].policies[0].text, "s3fifo:small=0.2");
	assert_string_equal(t.v[2].storage, "./a:b=c.yaml");
	tiers_fini(&t);
	/* in a list an option without a name belongs to the policy before */
	t = parse("nvme:lru,s3fifo:small=0.2,uses=7,slru:protected=0.5,fifo:1M",
		  true);
	assert_int_equal(t.v[0].n_policies, 4);
	assert_string_equal(t.v[0].storage, "nvme");
	assert_string_equal(t.v[0].policies[1].text, "s3fifo:small=0.2,uses=7");
	assert_string_equal(t.v[0].policies[2].text, "slru:protected=0.5");
	assert_string_equal(t.v[0].policies[3].text, "fifo");
	tiers_fini(&t);
}

static void lists_make_a_grid(void **state)
{
	struct tiers t = parse("lru,minio:10%,1G,0 nvme:all:50%", true);
	size_t n = 0;

	(void)state;
	while (policy_table[n])
		n++;
	assert_int_equal(t.v[0].n_policies, 2);
	assert_int_equal(t.v[0].n_sizes, 3);
	assert_int_equal(t.v[1].n_policies, n);
	tiers_fini(&t);
}

static void errors_say_where(void **state)
{
	static const struct {
		const char *text, *what;
	} bad[] = {
		{ "", "column 1: no tier" },
		{ " \t", "column 1: no tier" },
		{ "lru", "column 1: 'lru' is not [STORAGE:]POLICY:SIZE" },
		{ "lru:10% minio", "column 9: 'minio' is not " },
		{ "lur:10%", "column 1: unknown cache policy 'lur'; did you "
			     "mean 'lru'? (known: " },
		{ "dram:lru:10% nvme:lur:5%",
		  "column 19: unknown cache policy 'lur'" },
		{ "nvm:lru:10%", "column 1: unknown storage 'nvm'" },
		{ ":lru:10%", "column 1: unknown storage ''" },
		{ "lru:",
		  "column 5: '' is not a cache size such as 35% or 8G" },
		{ "nvme:lru:1024", NULL },
		{ "nvme:lru:10",
		  "column 10: 10 bytes hold no sample: write 10M, or 10% of "
		  "the dataset" },
		{ "nvme:lru:10X",
		  "column 10: '10X' is not a cache size such as 35% or 8G" },
		{ "lru:101%",
		  "column 5: '101%' is not a cache size such as 35% or 8G" },
		{ "lru:auto", "column 5: a tier needs a size such as" },
		{ "lru,fifo:1G", "column 1: name one policy, not 'lru,fifo'" },
		{ "lru:1G,2G", "column 5: give one size, not '1G,2G'" },
		{ "all:1G", "column 1: name one policy, not 'all'" },
		{ "nvme:slru:protected=2:1G",
		  "column 6: cache policy slru: protected: " },
		{ "slru:protect=.5:1G",
		  "column 1: cache policy slru: unknown option 'protect'" },
		{ "nvme:lru:a=1:1G",
		  "column 6: cache policy lru: unknown option 'a'" },
		{ "protected=.5:1G",
		  "column 1: unknown cache policy 'protected=.5'" },
		{ "slru:protected=.5,fifo:1G",
		  "column 1: name one policy, not 'slru:protected=.5,fifo'" },
		{ "lru:1K lru:1K lru:1K lru:1K lru:1K lru:1K lru:1K lru:1K "
		  "lru:1K",
		  "column 57: more than 8 tiers" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct tiers t = { 0 };
		struct err err = { 0 };
		int r = tiers_parse(bad[i].text, false, check, &t, &err);

		tiers_fini(&t);
		if (r == (bad[i].what ? -EINVAL : 0) &&
		    (!bad[i].what ||
		     !strncmp(err.text, bad[i].what, strlen(bad[i].what))))
			continue;
		fail_msg("'%s': %d, '%s'", bad[i].text, r, err.text);
	}
}

static void who_admits(void **state)
{
	struct err err = { 0 };
	enum tier_admit a;

	(void)state;
	assert_int_equal(tier_admit_parse("every", &a, &err), 0);
	assert_int_equal(a, TIER_ADMIT_EVERY);
	assert_int_equal(tier_admit_parse("first", &a, &err), 0);
	assert_int_equal(a, TIER_ADMIT_FIRST);
	assert_int_equal(tier_admit_parse("last", &a, &err), -EINVAL);
	assert_string_equal(
		err.text, "unknown tier admission 'last' (known: every first)");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_tier),
		cmocka_unit_test(several_tiers_and_paths_with_colons),
		cmocka_unit_test(policies_with_options),
		cmocka_unit_test(lists_make_a_grid),
		cmocka_unit_test(errors_say_where),
		cmocka_unit_test(who_admits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
