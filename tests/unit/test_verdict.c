/* SPDX-License-Identifier: MIT */
/* Verdicts on invented results: the judged values, the points, and the text. */
/* cmocka has an expect_check, too: ours comes first */
#include "runner/spec/run_expect.h"
#include "runner/page/run_plot.h"
#include "runner/result/run_verdict.h"

#include <math.h>
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

/* The value of run `i`, point by point. */
static double *seconds(struct bench *b, size_t i)
{
	const struct metric *m = metric_find(&b->w.metrics, "seconds");

	return result_value(&b->res, i / b->w.repetitions, i % b->w.repetitions,
			    result_place(&b->res, m));
}

static bool *disturbed(struct bench *b, size_t i)
{
	return &b->res.disturbed[seconds(b, i) - b->res.value];
}

/* `seconds` is 10 a + b at each point, but what `v` says at the first ones: of
 * each its repetitions; NaN: there is none. */
static void judge(struct bench *b, const char *yaml, size_t n, const double *v)
{
	struct err err = { 0 };

	*b = (struct bench){ .r = { .out = (char *)"nowhere" } };
	b->r.w = &b->w;
	if (workload_parse(yaml, strlen(yaml), "w.yaml", &b->w, &err) < 0 ||
	    result_init(&b->res, &b->r, &err) < 0)
		fail_msg("%s", err.text);
	for (size_t i = 0; i < b->w.n_points * b->w.repetitions; i++) {
		size_t point = i / b->w.repetitions;

		*seconds(b, i) = i < n ? v[i]
				       : 10 * (double)(point / 2 + 1) +
						 (double)(point % 2 + 1);
	}
	assert_int_equal(verdicts_init(&b->v, &b->res, &err), 0);
}

static void done(struct bench *b)
{
	verdicts_fini(&b->v);
	result_fini(&b->res);
	workload_free(&b->w);
}

/* One check that is judged once: its verdict, its numbers and its note. */
static void comes_to(const char *check, size_t n, const double *v,
		     enum verdict_state state, const char *numbers,
		     const char *interval, const char *note)
{
	_cleanup_free_ char *yaml = NULL;
	struct bench b;

	assert_true(asprintf(&yaml, HEAD "%s\n", check) > 0);
	judge(&b, yaml, n, v);
	assert_int_equal(b.v.n, 1);
	assert_string_equal(b.v.items[0].numbers, numbers);
	assert_string_equal(b.v.items[0].interval, interval);
	assert_string_equal(b.v.items[0].note, note);
	assert_int_equal(b.v.items[0].state, state);
	assert_int_equal(score_in(&b.v.score, state), 1);
	done(&b);
}

static void expects(const char *check, size_t n, const double *v, bool pass,
		    const char *numbers)
{
	comes_to(check, n, v, pass ? VERDICT_PASS : VERDICT_FAIL, numbers, "",
		 "");
}

#define EXPECT(text)                                                          \
	"expect: [{kind: self, that: '" text "', where: {exec.a: 1, exec.b: " \
	"1}}]"
#define SERIES(tail)                                                          \
	"published: {p: {source: s, metric: seconds, along: exec.a, values: " \
	"{1: 10}, where: {exec.b: 1}, " tail "}}"
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
	assert_int_equal(b.v.score.n[EVIDENCE_ORDER][VERDICT_UNDECIDED], 2);
	assert_string_equal(b.v.items[0].numbers, "no value of au at 1");
	done(&b);
}

/* A check that the parser lets through has neither passed nor failed. */
static void nothing_judged_is_undecided(void **state)
{
	static const char *const checks[] = {
		THAT("seconds > 1"),
		"expect: [{kind: order, rising: seconds, along: exec.a}]",
		"published: {p: {kind: prediction, source: s, metric: seconds, "
		"along: exec.a, "
		"tolerance: 0.5, values: {1: 1}}}",
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
		assert_int_equal(b.v.items[0].state, VERDICT_UNDECIDED);
		assert_string_equal(b.v.items[0].numbers,
				    "no point was checked");
		assert_string_equal(b.v.items[0].at, "");
		*at = NULL;
		done(&b);
	}
}

#define REPS(n) "repetitions: " #n "\n"
#define FIRST "where: {exec.a: 1, exec.b: 1}"

/*
 * Intervals and repetitions from quantiles of Student's t that were found by
 * integrating its density, not by the functions under test. The interval of 9,
 * 10, 11 is 7.515862 to 12.484138, of the six values 9.257937 to 10.742063.
 */
static void repetitions_decide(void **state)
{
	static const double three[] = { 9, 10, 11 };
	static const double six[] = { 9, 11, 10, 10, 9.5, 10.5 };
	static const double same[] = { 10, 10, 10 };

	(void)state;
	comes_to(REPS(3) EXPECT("seconds < 13"), 3, three, VERDICT_PASS,
		 "10.00 < 13.00", "7.516 to 12.48", "");
	comes_to(REPS(3) EXPECT("seconds < 7"), 3, three, VERDICT_FAIL,
		 "10.00 < 7.000", "7.516 to 12.48", "");
	/* 4.30 / sqrt(3) > 2, t of three degrees of freedom: 3.18 / 2 < 2 */
	comes_to(REPS(3) EXPECT("seconds < 12"), 3, three, VERDICT_UNDECIDED,
		 "10.00 < 12.00", "7.516 to 12.48",
		 "about 4 repetitions would decide");
	comes_to(REPS(3) EXPECT("seconds >= 10"), 3, three, VERDICT_UNDECIDED,
		 "10.00 >= 10.00", "7.516 to 12.48",
		 "at its limit: no number of repetitions decides");
	comes_to(REPS(6) EXPECT("seconds == 10 +- 8%"), 6, six, VERDICT_PASS,
		 "10.00 == 10.00 +- 0.800", "9.258 to 10.74", "");
	comes_to(REPS(6) EXPECT("seconds == 10.8 +- 1"), 6, six,
		 VERDICT_UNDECIDED, "10.00 == 10.80 +- 1.000", "9.258 to 10.74",
		 "about 51 repetitions would decide");
	comes_to(REPS(6) EXPECT("9 <= seconds <= 11"), 6, six, VERDICT_PASS,
		 "9.000 <= 10.00 <= 11.00", "9.258 to 10.74", "");
	comes_to(REPS(3) EXPECT("seconds == 10 +- 0"), 3, same, VERDICT_PASS,
		 "10.00 == 10.00", "10.00 to 10.00", "");
	/* the runs that there are */
	comes_to(REPS(3) EXPECT("seconds < 13"), 3, (double[]){ 9, NAN, 10 },
		 VERDICT_UNDECIDED, "9.500 < 13.00", "3.147 to 15.85",
		 "about 3 repetitions would decide");
	/* one alone has no interval, and proves less than two */
	comes_to(REPS(3) EXPECT("seconds < 13"), 3, (double[]){ 9, NAN, NAN },
		 VERDICT_UNDECIDED, "9.000 < 13.00", "",
		 "one of 3 repetitions has all values");
	comes_to(REPS(2) SERIES("tolerance: 1, kind: input"), 2,
		 (double[]){ 9, 10 }, VERDICT_UNDECIDED,
		 "9.500, published 10.00 +- 1.000", "3.147 to 15.85",
		 "about 11 repetitions would decide");
}

/* Two sides of the same seeds: the interval is that of their differences. */
static void runs_are_paired(void **state)
{
	/* at b 1 and 2 */
	static const double far[] = { 100, 200, 300, 102, 201, 303 };

	(void)state;
	comes_to(REPS(3) "expect: [{kind: order, that: 'seconds[exec.b=2] > "
			 "seconds[exec.b=1]', where: {exec.a: 1}}]",
		 6, far, VERDICT_UNDECIDED, "202.0 > 200.0",
		 "difference -0.484 to 4.484",
		 "about 4 repetitions would decide");
	comes_to(REPS(3) "expect: [{kind: order, rising: seconds, along: "
			 "exec.b, where: {exec.a: 1}}]",
		 6, far, VERDICT_UNDECIDED, "1 200.0, 2 202.0",
		 "least step -0.484 to 4.484",
		 "about 4 repetitions would decide");
	comes_to(REPS(3) "expect: [{kind: order, rising: seconds, along: "
			 "exec.b, slack: 1, where: {exec.a: 1}}]",
		 6, far, VERDICT_PASS, "1 200.0, 2 202.0",
		 "least step -0.484 to 4.484", "");
	comes_to(REPS(3) "expect: [{kind: self, that: 'seconds[exec.b=2] / "
			 "seconds[exec.b=1] == 1 +- 5%', where: {exec.a: 1}}]",
		 6, far, VERDICT_PASS, "1.012 == 1.000 +- 0.0500",
		 "0.993 to 1.031", "");
	/* the order of each repetition: 1, 1, -1 */
	comes_to(REPS(3) "published: {p: {kind: order, rank: .9, source: s, "
			 "metric: seconds, along: exec.b, where: {exec.a: 1}, "
			 "values: {1: 1, 2: 2}}}",
		 6, (double[]){ 1, 2, 3, 2, 3, 2 }, VERDICT_UNDECIDED,
		 "Spearman's rho 0.333 >= 0.9, of 2 values", "-2.535 to 3.202",
		 "about 19 repetitions would decide");
}

static void a_contradiction_is_no_pass(void **state)
{
	static const double v[] = { 10 };
	struct bench b;

	(void)state;
	comes_to(SERIES("tolerance: 1, kind: prediction, reason: typed off"), 1,
		 (double[]){ 20 }, VERDICT_NOT_REPRODUCED,
		 "20.00, published 10.00 +- 1.000", "", "typed off");
	comes_to(SERIES("tolerance: 1, kind: prediction, reason: typed off"), 1,
		 v, VERDICT_FAIL, "10.00, published 10.00 +- 1.000", "",
		 "it holds, but gives a reason why it does not");
	/* the claim is the series: here one of its values */
	judge(&b,
	      HEAD "published: {p: {source: s, metric: seconds, along: exec.a, "
		   "values: {1: 10, 2: 20}, where: {exec.b: 1}, tolerance: 1, "
		   "kind: prediction, reason: why}}\n",
	      3, (double[]){ 10, 0, 30 });
	assert_int_equal(b.v.items[0].state, VERDICT_PASS);
	assert_int_equal(b.v.items[1].state, VERDICT_NOT_REPRODUCED);
	done(&b);
	comes_to(REPS(2) SERIES("tolerance: 1, kind: input, reason: why"), 2,
		 (double[]){ 9, 10 }, VERDICT_UNDECIDED,
		 "9.500, published 10.00 +- 1.000", "3.147 to 15.85",
		 "about 11 repetitions would decide");
}

static void a_disturbed_run_decides_nothing(void **state)
{
	static const char yaml[] = HEAD
		"metrics: {double: {of: 2 * seconds}}\n"
		"expect: [{kind: order, that: seconds < 99, " FIRST "}, "
		"{kind: order, that: 'seconds[exec.a=1] < 99', where: {exec.b: "
		"2}}]\n";
	struct err err = { 0 };
	struct bench b;

	(void)state;
	judge(&b, yaml, 0, NULL);
	assert_int_equal(score_in(&b.v.score, VERDICT_PASS), 2);
	verdicts_fini(&b.v);
	*disturbed(&b, 0) = true;
	assert_int_equal(verdicts_init(&b.v, &b.res, &err), 0);
	assert_int_equal(b.v.items[0].state, VERDICT_UNDECIDED);
	assert_string_equal(b.v.items[0].note,
			    "other programs disturbed a run");
	assert_int_equal(b.v.items[1].state, VERDICT_PASS);
	/* so is what is derived from it */
	assert_int_equal(result_derive(&b.res), 0);
	assert_true(b.res.disturbed[result_place(
		&b.res, metric_find(&b.w.metrics, "double"))]);
	done(&b);
}

static void no_number_decides_nothing(void **state)
{
	(void)state;
	comes_to(EXPECT("1 / (seconds - 11) < 5"), 0, NULL, VERDICT_UNDECIDED,
		 "the result is not a number", "", "");
	comes_to(EXPECT("seconds < 5"), 1, (double[]){ NAN }, VERDICT_UNDECIDED,
		 "no value of seconds", "", "");
	comes_to("expect: [{kind: order, falling: seconds, along: exec.a, "
		 "where: {exec.b: 1}}]",
		 1, (double[]){ NAN }, VERDICT_UNDECIDED,
		 "no value of seconds at 1", "", "");
	/* two runs, but of different seeds */
	comes_to(REPS(2) "expect: [{kind: order, that: 'seconds[exec.b=2] > "
			 "seconds[exec.b=1]', where: {exec.a: 1}}]",
		 4, (double[]){ 1, NAN, NAN, 1 }, VERDICT_UNDECIDED,
		 "no value of seconds", "", "");
}

/* The interval of the table, which from nine values on is not their range. */
#define NULL_SERIES(value, tail)                                              \
	HEAD "null: {exec.b: 2}\npublished: {p: {source: s, metric: "         \
	     "seconds, along: exec.a, values: {2: " value "}, tolerance: 1, " \
	     "kind: prediction" tail "}}\n"

/* At exec.a 2 ours is 21, and 22 without the effect. */
static void what_passes_without_the_effect_is_input(void **state)
{
	static const struct {
		const char *yaml;
		enum evidence_kind kind;
		enum verdict_state state;
		const char *note;
	} all[] = {
		{ NULL_SERIES("20.5", ""), EVIDENCE_PREDICTION, VERDICT_PASS,
		  "" },
		{ NULL_SERIES("21.5", ""), EVIDENCE_INPUT, VERDICT_PASS,
		  "passes without the effect, too" },
		{ NULL_SERIES("22.5", ""), EVIDENCE_PREDICTION, VERDICT_FAIL,
		  "" },
		{ NULL_SERIES("22.5", ", reason: why"), EVIDENCE_PREDICTION,
		  VERDICT_NOT_REPRODUCED, "why" },
		{ NULL_SERIES("21.5", "") "exclude: [{exec.a: 2, exec.b: 2}]\n",
		  EVIDENCE_PREDICTION, VERDICT_PASS, "" },
		{ HEAD "null: {exec.b: 2}\npublished: {p: {source: s, metric: "
		       "seconds, along: exec.a, values: {2: 21.5}}}\n"
		       "expect: [{that: seconds == published.p +- 1, kind: "
		       "prediction, where: {exec.a: 2}}]\n",
		  EVIDENCE_INPUT, VERDICT_PASS,
		  "passes without the effect, too" },
	};
	struct bench b;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		judge(&b, all[i].yaml, 0, NULL);
		assert_int_equal(b.v.n, 1);
		assert_string_equal(b.v.items[0].at, "2");
		assert_int_equal(b.v.items[0].kind, all[i].kind);
		assert_int_equal(b.v.items[0].state, all[i].state);
		assert_string_equal(b.v.items[0].note, all[i].note);
		done(&b);
	}
	/* others judge the points without it only if they name the axis */
	judge(&b,
	      HEAD "null: {exec.b: 2}\nkind: self\n"
		   "expect: [{that: seconds < 99}, {that: seconds < 99, "
		   "where: {exec.b: [1, 2]}}]\n",
	      0, NULL);
	assert_int_equal(b.v.n, 3 + 6);
	done(&b);
}

static void a_plot_shows_the_interval(void **state)
{
	static const char yaml[] = HEAD
		"plot: [{x: exec.a, y: seconds, where: {exec.b: 1}}]\n";
	double v[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 };
	_cleanup_free_ char *text = NULL;
	struct bench b;
	size_t size;
	FILE *f;

	(void)state;
	judge(&b, yaml, 0, NULL);
	*(struct spread *)result_at(&b.res, 0,
				    metric_find(&b.w.metrics, "seconds")) =
		stats_spread(v, 9);
	f = open_memstream(&text, &size);
	assert_non_null(f);
	assert_int_equal(plot_data(&b.res, b.w.plots.items, f), 1);
	fclose(f);
	assert_non_null(strstr(text, "\n1 \"1\" 5 2 8\n"));
	done(&b);
}

static void kinds_are_counted(void **state)
{
	struct score s = { 0 };
	char text[SCORE_TEXT];

	(void)state;
	score_text(&s, text, sizeof(text));
	assert_string_equal(text, "0 of 0 checks passed");
	score_add(&s, EVIDENCE_ORDER, VERDICT_PASS);
	score_add(&s, EVIDENCE_ORDER, VERDICT_FAIL);
	score_add(&s, EVIDENCE_PREDICTION, VERDICT_NOT_REPRODUCED);
	score_add(&s, EVIDENCE_SELF, VERDICT_UNDECIDED);
	score_text(&s, text, sizeof(text));
	assert_string_equal(text,
			    "1 of 4 checks passed: self 0 of 1, prediction 0 "
			    "of 1, order 1 of 2; 1 failed, 1 undecided, 1 not "
			    "reproduced");
	for (int k = 0; k < EVIDENCE_KINDS; k++)
		assert_int_equal(
			!strcmp(verdict_word(k, VERDICT_PASS), "REPRODUCED"),
			k == EVIDENCE_CALIBRATED || k == EVIDENCE_PREDICTION);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_stars_are_all_combinations),
		cmocka_unit_test(small_differences_are_shown),
		cmocka_unit_test(numbers_keep_their_digits),
		cmocka_unit_test(a_missing_value_is_no_rank),
		cmocka_unit_test(nothing_judged_is_undecided),
		cmocka_unit_test(repetitions_decide),
		cmocka_unit_test(runs_are_paired),
		cmocka_unit_test(a_contradiction_is_no_pass),
		cmocka_unit_test(a_disturbed_run_decides_nothing),
		cmocka_unit_test(no_number_decides_nothing),
		cmocka_unit_test(what_passes_without_the_effect_is_input),
		cmocka_unit_test(a_plot_shows_the_interval),
		cmocka_unit_test(kinds_are_counted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
