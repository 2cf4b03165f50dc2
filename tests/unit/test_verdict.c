/* SPDX-License-Identifier: MIT */
/* Verdicts on invented results: the judged values, the points, and the text. */
/* cmocka has an expect_check, too: ours comes first */
#include "runner/spec/run_expect.h"
#include "runner/result/run_verdict.h"

#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "tests/unit/test.h"

#define HEAD                                          \
	"name: w\nquestion: q\ndataset: {files: 1}\n" \
	"axes: {exec.a: [1, 2, 3], exec.b: [1, 2]}\n"

struct bench {
	struct workload w;
	struct runner r;
	struct result res;
	struct verdicts v;
};

/* `seconds` is 10 a + b at each point, except for the first ones, where `v`
 * gives it. */
static void judge(struct bench *b, const char *yaml, size_t n, const double *v)
{
	struct err err = { 0 };

	*b = (struct bench){ .r = { .out = (char *)"nowhere" } };
	b->r.w = &b->w;
	if (workload_parse(yaml, strlen(yaml), "w.yaml", &b->w, &err) < 0 ||
	    result_init(&b->res, &b->r, &err) < 0)
		fail_msg("%s", err.text);
	for (size_t i = 0; i < b->w.n_points; i++) {
		struct spread *s = (struct spread *)result_at(
			&b->res, i, metric_find(&b->w.metrics, "seconds"));

		s->n = 1;
		s->median =
			i < n ? v[i]
			      : 10 * (double)(i / 2 + 1) + (double)(i % 2 + 1);
	}
	assert_int_equal(verdicts_init(&b->v, &b->res, &err), 0);
}

static void done(struct bench *b)
{
	verdicts_fini(&b->v);
	result_fini(&b->res);
	workload_free(&b->w);
}

/* One check that is judged once: its verdict and its numbers. */
static void expects(const char *check, size_t n, const double *v, bool pass,
		    const char *numbers)
{
	_cleanup_free_ char *yaml = NULL;
	struct bench b;

	assert_true(asprintf(&yaml, HEAD "%s\n", check) > 0);
	judge(&b, yaml, n, v);
	assert_int_equal(b.v.n, 1);
	assert_string_equal(b.v.items[0].numbers, numbers);
	assert_true(b.v.items[0].pass == pass);
	done(&b);
}

#define THAT(text) "expect: [{kind: self, that: '" text "'}]"

static void two_stars_are_all_combinations(void **state)
{
	const double corner[] = { 11, 99 }; /* off the diagonal */

	(void)state;
	expects(THAT("max(seconds[exec.a=*, exec.b=*]) < 40"), 0, NULL, true,
		"32.00 < 40.00");
	expects(THAT("max(seconds[exec.a = *, exec.b = *]) < 40"), 2, corner,
		false, "99.00 < 40.00");
	expects(THAT("sum(seconds[exec.a=*, exec.b=*]) == 129 +- 0"), 0, NULL,
		true, "129.0 == 129.0");
	expects(THAT("sum(seconds[exec.a = *, exec.b = 2]) == 66 +- 0"), 0,
		NULL, true, "66.00 == 66.00");
}

/* The numbers shown agree with the verdict. */
static void small_differences_are_shown(void **state)
{
	const double tiny[] = { .000421 }, close[] = { 10.50004, 0, 10.5 };
	const double third[] = { 1. / 3 };

	(void)state;
	expects(THAT("seconds[exec.a=1, exec.b=1] < 4e-4"), 1, tiny, false,
		"0.000421 < 0.000400");
	expects(THAT("seconds[exec.a=1, exec.b=1] < 1e-9"), 1, tiny, false,
		"0.000421 < 1.000e-09");
	expects(THAT("seconds[exec.a=1,exec.b=1] < seconds[exec.a=2,exec.b=1]"),
		3, close, false, "10.50004 < 10.50000");
	expects(THAT("seconds[exec.a=1, exec.b=1] == 10 +- 0.5"), 1, close,
		false, "10.50004 == 10.00000 +- 0.500000");
	expects(THAT("seconds[exec.a=1, exec.b=1] == 0.333 +- 0"), 1, third,
		false, "0.3333 == 0.3330");
	expects("expect: [{kind: order, rising: seconds, along: exec.a, of: "
		"[1, 2], where: "
		"{exec.b: 1}}]",
		3, close, false, "1 10.50004, 2 10.50000");
	expects("published: {p: {kind: prediction, source: s, metric: seconds, "
		"along: exec.a, "
		"values: {1: 10}, where: {exec.b: 1}, tolerance: 0.5}}",
		1, close, false, "10.50004, published 10.00000 +- 0.500000");
}

static void numbers_keep_their_digits(void **state)
{
	static const struct {
		double v;
		const char *people, *programs;
	} cases[] = {
		{ 0, "0", "0" },
		{ .5, "0.500", "0.5" },
		{ -.0004, "-0.000400", "-0.0004" },
		{ .0123456, "0.0123", "0.0123456" },
		{ 27.5, "27.50", "27.5" },
		{ 123456789012, "123456789012", "123456789012" },
		{ 1e18, "1.000e+18", "1e+18" },
		{ .1 + .2, "0.300", "0.30000000000000004" },
	};
	char text[RESULT_TEXT];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		result_number(text, sizeof(text), cases[i].v);
		assert_string_equal(text, cases[i].people);
		result_exact(text, sizeof(text), cases[i].v);
		assert_string_equal(text, cases[i].programs);
	}
}

/* A rank covers all published values, or none. */
static void a_missing_value_is_no_rank(void **state)
{
	struct bench b;

	(void)state;
	judge(&b,
	      HEAD "published: {p: {kind: order, source: s, metric: au, along: "
		   "exec.a, rank: "
		   "0, values: {1: 1, 2: 2}}}\n",
	      0, NULL);
	assert_int_equal(b.v.n, 2);
	assert_int_equal(b.v.n_failed, 2);
	assert_string_equal(b.v.items[0].numbers, "no value of au at 1");
	done(&b);
}

/* A check that the parser lets through has not passed. */
static void nothing_judged_has_failed(void **state)
{
	static const char *const checks[] = {
		THAT("seconds > 1"),
		"expect: [{kind: order, rising: seconds, along: exec.a}]",
		"published: {p: {kind: prediction, source: s, metric: seconds, "
		"along: exec.a, "
		"tolerance: 1, values: {1: 1}}}",
		"published: {p: {kind: order, source: s, metric: seconds, "
		"along: exec.a, "
		"rank: 1, values: {1: 1, 2: 2}}}",
	};
	struct conf_node none = { .kind = CONF_KIND_SEQUENCE,
				  .key = (char *)"exec.b" };
	struct conf_node *items[] = { &none };
	struct conf_node where = { .kind = CONF_KIND_MAPPING,
				   .items = items,
				   .n = 1 };

	(void)state;
	for (size_t i = 0; i < sizeof(checks) / sizeof(*checks); i++) {
		_cleanup_free_ char *yaml = NULL;
		struct err err = { 0 };
		struct conf_node **at;
		struct bench b;

		assert_true(asprintf(&yaml, HEAD "%s\n", checks[i]) > 0);
		judge(&b, yaml, 0, NULL);
		verdicts_fini(&b.v);
		at = b.w.expects.n
			     ? &((struct expect *)b.w.expects.items)->where
			     : &((struct published *)b.w.published.items)
					->where;
		*at = &where;
		assert_int_equal(verdicts_init(&b.v, &b.res, &err), 0);
		assert_int_equal(b.v.n, 1);
		assert_false(b.v.items[0].pass);
		assert_string_equal(b.v.items[0].numbers,
				    "no point was checked");
		assert_string_equal(b.v.items[0].at, "");
		*at = NULL;
		done(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_stars_are_all_combinations),
		cmocka_unit_test(small_differences_are_shown),
		cmocka_unit_test(numbers_keep_their_digits),
		cmocka_unit_test(a_missing_value_is_no_rank),
		cmocka_unit_test(nothing_judged_has_failed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
