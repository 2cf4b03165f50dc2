/* SPDX-License-Identifier: MIT */
#include "tests/unit/test.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/rng.h"
#include "common/units.h"
#include "common/util.h"
#include "emu/profile/profile_storage.h"
#include "fs/layer/fault.h"

static struct fault_rule parse_one(const char *text)
{
	struct fault_rule *rules, r;
	struct err err = { 0 };
	size_t n;

	if (fault_rules_parse(text, strlen(text), &rules, &n, &err) < 0)
		fail_msg("%s: %s", text, err.text);
	assert_int_equal(n, 1);
	r = rules[0];
	free(rules);
	return r;
}

static void rules_are_read(void **state)
{
	struct fault_rule r = parse_one("op=read,path=*.jpg,every=100,"
					"errno=EIO");

	(void)state;
	assert_int_equal(r.ops, 1 << STORAGE_READ);
	assert_string_equal(r.path, "*.jpg");
	assert_int_equal(r.every, 100);
	assert_int_equal(r.error, -EIO);
	assert_true(r.p == 1);
	assert_false(r.stuck);
	fault_rule_fini(&r);
	r = parse_one(" op = open , p = .01 , delay = 200ms ");
	assert_int_equal(r.ops, 1 << STORAGE_OPEN);
	assert_true(r.p == .01);
	assert_int_equal(r.delay_ns, 200 * NS_PER_MS);
	assert_string_equal(r.text, "op = open , p = .01 , delay = 200ms");
	fault_rule_fini(&r);
	r = parse_one("op=metadata,path=a\\,b\\;c,stuck,for=2s,after=3,"
		      "first=5,count=7");
	assert_int_equal(r.ops,
			 1 << STORAGE_OPEN | 1 << STORAGE_LOOKUP |
				 1 << STORAGE_READDIR | 1 << STORAGE_CREATE |
				 1 << STORAGE_REMOVE | 1 << STORAGE_RENAME);
	assert_true(r.stuck);
	assert_int_equal(r.delay_ns, 2 * NS_PER_S);
	assert_int_equal(r.after, 3);
	assert_int_equal(r.first, 5);
	assert_int_equal(r.count, 7);
	assert_true(fault_glob(r.path, "a,b;c"));
	fault_rule_fini(&r);
	r = parse_one("errno=ESTALE");
	assert_int_equal(r.ops, (1 << STORAGE_N_OPS) - 1);
	fault_rule_fini(&r);
}

static void semicolons_separate_rules(void **state)
{
	const char *text = "errno=EIO; op=read,delay=1s ;stuck";
	struct fault_rule *rules;
	size_t n;

	(void)state;
	assert_int_equal(
		fault_rules_parse(text, strlen(text), &rules, &n, NULL), 0);
	assert_int_equal(n, 3);
	assert_string_equal(rules[0].text, "errno=EIO");
	assert_string_equal(rules[1].text, "op=read,delay=1s");
	assert_string_equal(rules[2].text, "stuck");
	assert_int_equal(rules[1].delay_ns, NS_PER_S);
	assert_true(rules[2].stuck);
	fault_rules_free(rules, n);
}

static void bad_rules_name_the_column_and_the_words(void **state)
{
	static const struct {
		const char *text, *column, *word;
	} bad[] = {
		{ "", "column 1:", "known: op path after" },
		{ "op=read", "column 1:", "errno=, delay= or stuck" },
		{ "op=reed,errno=EIO", "column 4:",
		  "known: open lookup readdir read write sync create remove "
		  "rename metadata any" },
		{ "op=read,pth=x,errno=EIO", "column 9:", "known: op path" },
		{ "op=read, pth=x,errno=EIO", "column 10:", "'pth'" },
		{ "errno=EIEIO", "column 7:", "known: EIO ENOENT ESTALE" },
		{ "errno=ENOSYS", "column 7:", "EUCLEAN" },
		{ "errno=EIO,", "column 11:", "known:" },
		{ "errno=EIO;", "column 11:", "known:" },
		{ "errno=EIO;;errno=EIO", "column 11:", "known:" },
		{ "errno=EIO;errno=EIO,errno=EIO", "column 21:", "twice" },
		{ "errno", "column 1:", "errno=..." },
		{ "stuck=1", "column 7:", "no value" },
		{ "p=2,errno=EIO", "column 3:", "0 to 1" },
		{ "p=nan,errno=EIO", "column 3:", "0 to 1" },
		{ "every=0,errno=EIO", "column 7:", "of 1 or more" },
		{ "every=-1,errno=EIO", "column 7:", "of 1 or more" },
		{ "after=1x,errno=EIO", "column 7:", "of 0 or more" },
		{ "count=99999999999999999999,errno=EIO", "column 7:", "1" },
		{ "delay=5", "column 7:", "with its unit" },
		{ "delay=0s", "column 7:", "with its unit" },
		{ "delay=721h", "column 7:", "30 days" },
		{ "for=5s,errno=EIO", "column 1:", "needs 'stuck'" },
		{ "stuck,errno=EIO", "column 1:", "excludes" },
		{ "stuck,delay=1s", "column 1:", "excludes" },
		{ "path=/x,errno=EIO", "column 6:", "below the mount" },
		{ "path=,errno=EIO", "column 6:", "below the mount" },
		{ "errno=\nEIO", "column 7:", "control character" },
		{ "path=\xff,errno=EIO", "column 1:", "UTF-8" },
	};
	struct fault_rule *rules;
	size_t n;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct err err = { 0 };

		assert_int_equal(fault_rules_parse(bad[i].text,
						   strlen(bad[i].text), &rules,
						   &n, &err),
				 -EINVAL);
		if (!strstr(err.text, bad[i].column) ||
		    !strstr(err.text, bad[i].word))
			fail_msg("'%s': %s", bad[i].text, err.text);
	}
	assert_int_equal(fault_rules_parse("stuck\0", 6, &rules, &n, NULL),
			 -EINVAL);
}

/* Some words, with a byte or two possibly wrong. */
static size_t some_words(struct rng *rng, char *buf)
{
	static const char *const some[] = {
		"op=read", "op=any", "path=a/**", "path=\\,",
		"every=2", "p=.5",   "delay=1ms", "errno=EIO",
		"stuck",   "for=1s", "count=1",
	};
	size_t n = 0;

	for (uint64_t words = 1 + rng_below(rng, 4); words; words--)
		n += (size_t)sprintf(buf + n, "%s%s",
				     some[rng_below(rng, ARRAY_SIZE(some))],
				     rng_below(rng, 4) ? "," : ";");
	n -= rng_below(rng, 8) != 0;
	for (uint64_t k = rng_below(rng, 3); k; k--)
		buf[rng_below(rng, n)] = (char)rng_u64(rng);
	return n;
}

/* Any bytes: an error, or complete rules. */
static void any_bytes_are_read_or_refused(void **state)
{
	struct rng rng = rng_stream(1, "fault", 0);
	size_t n_good = 0;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		char buf[200];
		size_t n = some_words(&rng, buf), n_rules;
		struct fault_rule *rules;
		/* no NUL behind it, so that the sanitizer sees reads past the
		 * end */
		char *text = memcpy(malloc(n), buf, n);

		if (fault_rules_parse(text, n, &rules, &n_rules, NULL) == 0) {
			for (size_t j = 0; j < n_rules; j++)
				assert_true(rules[j].error ||
					    rules[j].delay_ns ||
					    rules[j].stuck);
			fault_rules_free(rules, n_rules);
			n_good++;
		}
		free(text);
	}
	assert_in_range(n_good, 1000, 10000);
}

static void globs_match_names_or_paths(void **state)
{
	static const struct {
		const char *glob, *path;
		bool want;
	} cases[] = {
		{ "*.jpg", "x.jpg", true },
		{ "*.jpg", "n01/a/x.jpg", true },
		{ "*.jpg", "n01.jpg/x", false },
		{ "x", "a/x/y", false },
		{ "n01*/*", "n012/x", true },
		{ "n01*/*", "n012/a/x", false },
		{ "n01*/**", "n012/a/x", true },
		{ "n01*/**", "n012", false },
		{ "**/x", "x", true },
		{ "**/x", "a/b/x", true },
		{ "**/x", "a/b/xy", false },
		{ "a/**/z", "a/z", true },
		{ "a/**/z", "a/b/c/z", true },
		{ "a/**/z", "b/c/z", false },
		{ "**/b/**/d", "a/b/c/b/d", true },
		{ "**/b/**/d", "a/c/d", false },
		{ "**", "a/b", true },
		{ "**", ".", true },
		{ "*", ".", true },
		{ "a/b", "a/b/c", false },
		{ "a/b/c", "a/b", false },
		{ "a/b/", "a/b", true },
		{ "[ab]?/x", "b1/x", true },
		{ "[ab]?/x", "c1/x", false },
		{ "a**/x", "ab/x", true },
		{ "\\*/x", "*/x", true },
		{ "\\*/x", "a/x", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (fault_glob(cases[i].glob, cases[i].path) != cases[i].want)
			fail_msg("%s, %s", cases[i].glob, cases[i].path);
}

/* Run n operations: a string of '.' and 'x'. */
static char *run(const char *text, uint64_t seed, size_t n, uint64_t *ret_fired)
{
	struct fault_rule r = parse_one(text);
	char *s = calloc(1, n + 1);
	uint64_t fired = 0;

	for (uint64_t k = 1; k <= n; k++) {
		bool over = fault_is_over(&r, k - 1, fired);
		bool fires = fault_fires(&r, seed, k, fired);

		assert_false(over && fires);
		fired += fires;
		s[k - 1] = fires ? 'x' : '.';
	}
	fault_rule_fini(&r);
	*ret_fired = fired;
	return s;
}

static void counting_is_exact(void **state)
{
	static const struct {
		const char *rule, *want;
	} cases[] = {
		{ "errno=EIO", "xxxxxxxxxxxx" },
		{ "every=3,errno=EIO", "..x..x..x..x" },
		{ "every=3,count=2,errno=EIO", "..x..x......" },
		{ "first=2,errno=EIO", "xx.........." },
		{ "after=2,errno=EIO", "..xxxxxxxxxx" },
		{ "after=2,first=4,every=2,errno=EIO", "...x.x......" },
		{ "p=0,errno=EIO", "............" },
		{ "p=1,every=4,errno=EIO", "...x...x...x" },
	};
	uint64_t fired;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char *got = run(cases[i].rule, 1, 12, &fired);

		assert_string_equal(got, cases[i].want);
		free(got);
	}
}

static void probability_is_kept_and_repeats(void **state)
{
	enum { N = 100000 };
	const double ps[] = { .001, .01, .3, .9 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ps); i++) {
		uint64_t a_fired, b_fired, other_fired;
		char rule[40];

		snprintf(rule, sizeof(rule), "p=%g,errno=EIO", ps[i]);
		char *a = run(rule, 1, N, &a_fired);
		char *b = run(rule, 1, N, &b_fired);
		char *other = run(rule, 2, N, &other_fired);
		double sd = sqrt(N * ps[i] * (1 - ps[i]));

		/* four standard deviations; the seeds are fixed */
		assert_true(fabs((double)a_fired - N * ps[i]) < 4 * sd);
		assert_true(fabs((double)other_fired - N * ps[i]) < 4 * sd);
		assert_string_equal(a, b);
		assert_string_not_equal(a, other);
		free(a);
		free(b);
		free(other);
	}
}

/*
 * The first few hundred of many seeds, one after the other, as experiments
 * repeat: what fires is as many, as scattered and as independent as it should.
 */
static void short_runs_are_independent(void **state)
{
	enum { SEEDS = 4000, N = 306 };
	const double p = .05, mean = N * p, variance = N * p * (1 - p);
	struct fault_rule r = parse_one("op=read,p=0.05,errno=EBUSY");
	double sum = 0, squares = 0, next_seed = 0, last = mean;
	uint64_t pairs = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		double n = 0;
		bool before = false;

		for (uint64_t k = 1; k <= N; k++) {
			bool fires = fault_fires(&r, seed, k, 0);

			pairs += before && fires;
			before = fires;
			n += fires;
		}
		sum += n;
		squares += (n - mean) * (n - mean);
		next_seed += (n - mean) * (last - mean);
		last = n;
	}
	fault_rule_fini(&r);
	/* four standard deviations of each; the seeds are fixed */
	assert_true(fabs(sum / SEEDS - mean) < 4 * sqrt(variance / SEEDS));
	assert_true(fabs(squares / SEEDS / variance - 1) <
		    4 * sqrt(2. / SEEDS));
	assert_true(fabs(next_seed / SEEDS / variance) < 4 / sqrt(SEEDS));
	assert_true(fabs((double)pairs - SEEDS * (N - 1) * p * p) <
		    4 * sqrt(SEEDS * (N - 1) * p * p));
}

static void a_decision_depends_on_seed_rule_and_k_alone(void **state)
{
	struct fault_rule r = parse_one("p=.5,errno=EIO");
	struct fault_rule same = parse_one("p=.5,errno=EIO");
	struct fault_rule other = parse_one("p=.5,errno=ENOENT");
	int differ = 0;

	(void)state;
	/* backwards, and after any history */
	for (uint64_t k = 1000; k; k--) {
		bool fires = fault_fires(&r, 7, k, 0);

		assert_int_equal(fires, fault_fires(&same, 7, k, k));
		differ += fires != fault_fires(&other, 7, k, 0);
	}
	assert_in_range(differ, 400, 600);
	fault_rule_fini(&r);
	fault_rule_fini(&same);
	fault_rule_fini(&other);
}

static void a_rule_is_for_its_operations_and_paths(void **state)
{
	struct fault_rule r = parse_one("op=open,path=a/*,errno=EIO");

	(void)state;
	assert_true(fault_matches(&r, STORAGE_OPEN, "a/x"));
	assert_false(fault_matches(&r, STORAGE_READ, "a/x"));
	assert_false(fault_matches(&r, STORAGE_OPEN, "b/x"));
	fault_rule_fini(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules_are_read),
		cmocka_unit_test(semicolons_separate_rules),
		cmocka_unit_test(bad_rules_name_the_column_and_the_words),
		cmocka_unit_test(any_bytes_are_read_or_refused),
		cmocka_unit_test(globs_match_names_or_paths),
		cmocka_unit_test(counting_is_exact),
		cmocka_unit_test(probability_is_kept_and_repeats),
		cmocka_unit_test(short_runs_are_independent),
		cmocka_unit_test(a_decision_depends_on_seed_rule_and_k_alone),
		cmocka_unit_test(a_rule_is_for_its_operations_and_paths),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
