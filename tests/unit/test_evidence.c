/* SPDX-License-Identifier: MIT */
/* The kinds of evidence: what a check may call itself. */
/* cmocka has an expect_check, too: first ours */
#include "runner/spec/run_expect.h"

#include <errno.h>
#include <string.h>

#include "tests/unit/test.h"

#define AXES                                                        \
	"name: w\nquestion: Why?\ndataset: {dataset: imagenette}\n" \
	"axes: {fs.a: [10%, 20%], fs.b: [20%, 40%], n: [{label: slow}]}\n"

/* Its tail begins at 7:6. */
#define SERIES(tail)                                                          \
	AXES "published:\n  p: {metric: au, source: s, along: fs.b, values: " \
	     "{20%: 1, 40%: 2},\n     " tail "}\n"

static int parse(const char *yaml, struct workload *w, struct err *err)
{
	*err = (struct err){ 0 };
	return workload_parse(yaml, strlen(yaml), "w.yaml", w, err);
}

static void errors_say_where(void **state)
{
	static const struct {
		const char *yaml, *text;
	} bad[] = {
		{ AXES "expect:\n- that: au < 5\n",
		  "w.yaml:6:3: this check has no 'kind': input, self, "
		  "calibrated, prediction or order" },
		{ AXES "expect:\n- {that: au < 5, kind: fact}\n",
		  "w.yaml:6:24: unknown kind 'fact' (known: input self "
		  "calibrated prediction order)" },
		{ AXES "kind: fact\n",
		  "w.yaml:5:7: unknown kind 'fact' (known: input self "
		  "calibrated prediction order)" },
		{ AXES "kind: self\nexpect:\n- {rising: au, along: fs.b}\n",
		  "w.yaml:7:3: rising and falling are of kind 'order'" },
		{ AXES "expect:\n- {that: au == 5 +- 1, kind: prediction}\n",
		  "w.yaml:6:30: calibrated and prediction compare with "
		  "published.NAME: a == b +- 5%" },
		{ SERIES("kind: prediction, tolerance: 1"),
		  "w.yaml:6:6: 10%, 20%, slow: the tolerance includes 0: a "
		  "testbed "
		  "that always says 0 would reproduce it. Judge a bound, of "
		  "kind 'order'" },
		{ SERIES("rank: 1") "expect:\n- {that: 9 * au == 9 * "
				    "published.p +- 10, kind: prediction, "
				    "where: {fs.b: 20%}}\n",
		  "w.yaml:9:3: 10%, 20%, slow: the tolerance includes 0: a "
		  "testbed "
		  "that always says 0 would reproduce it. Judge a bound, of "
		  "kind 'order'" },
		{ SERIES("rank: 1") "expect:\n- {that: au == published.p +- "
				    "100%, kind: prediction, where: {fs.b: "
				    "40%}}\n",
		  "w.yaml:9:3: 10%, 40%, slow: the tolerance includes 0: a "
		  "testbed "
		  "that always says 0 would reproduce it. Judge a bound, of "
		  "kind 'order'" },
		/* too wide */
		{ SERIES("kind: prediction, tolerance: 0.6"),
		  "w.yaml:7:35: 10%, 20%, slow: the tolerance is more than "
		  "half of the published value: judge a bound, of kind "
		  "'order'" },
		{ SERIES("kind: calibrated, fitted: a, tolerance: 51%"),
		  "w.yaml:7:46: 10%, 20%, slow: the tolerance is more than "
		  "half of the published value: judge a bound, of kind "
		  "'order'" },
		{ SERIES("rank: 1, kind: order") "expect:\n- {that: au == "
						 "published.p +- 0.6, kind: "
						 "prediction}\n",
		  "w.yaml:9:10: 10%, 20%, slow: the tolerance is more than "
		  "half of the published value: judge a bound, of kind "
		  "'order'" },
		/* where the effect is left out */
		{ AXES "null: slow\n",
		  "w.yaml:5:7: null is {AXIS: LABEL}: where the effect is "
		  "left out" },
		{ AXES "null: {n: slow, fs.a: 10%}\n",
		  "w.yaml:5:7: null is {AXIS: LABEL}: where the effect is "
		  "left out" },
		{ AXES "null: {n: fast}\n",
		  "w.yaml:5:11: not a value of axis 'n'" },
		{ SERIES("rank: 1") "expect:\n- {that: au < published.p, kind: "
				    "prediction}\n",
		  "w.yaml:9:34: calibrated and prediction compare with "
		  "published.NAME: a == b +- 5%" },
		{ AXES "expect:\n- {that: au < 5, kind: order, reason: no}\n",
		  "w.yaml:6:39: a reason is why a published value is not "
		  "reproduced; this check names none" },
		{ SERIES("tolerance: 1") "kind: self\n",
		  "w.yaml:6:6: this check has no 'kind': input, self, "
		  "calibrated, prediction or order" },
		{ SERIES("kind: order, tolerance: 1, rank: 1"),
		  "w.yaml:7:12: a tolerance judges a number; 'order' is the "
		  "kind of a rank alone" },
		{ SERIES("kind: prediction, rank: 1"),
		  "w.yaml:7:12: a rank without a tolerance is of kind "
		  "'order'" },
		{ SERIES("kind: prediction"),
		  "w.yaml:7:12: these values are not judged: give a "
		  "tolerance or a rank" },
		{ SERIES("reason: none"),
		  "w.yaml:7:14: these values are not judged: give a "
		  "tolerance or a rank" },
		{ SERIES("kind: calibrated, tolerance: 1"),
		  "w.yaml:7:12: calibrated needs 'fitted': the points that "
		  "were fitted" },
		{ SERIES("kind: input, tolerance: 1, fitted: {fs.b: 20%}"),
		  "w.yaml:7:41: fitted goes with kind: calibrated" },
		{ SERIES("kind: prediction, tolerance: 1") "fitted: {fs.b: "
							   "20%}\n",
		  "w.yaml:7:12: 'fitted' says that points are fitted: the "
		  "kind is calibrated" },
		{ SERIES("kind: calibrated, tolerance: 1, fitted: {}"),
		  "w.yaml:7:46: fitted is {AXIS: LABEL}, a list of these, or "
		  "a text" },
		{ SERIES("kind: calibrated, tolerance: 1, fitted: [a]"),
		  "w.yaml:7:47: fitted is {AXIS: LABEL}, a list of these, or "
		  "a text" },
		{ SERIES("kind: calibrated, tolerance: 1, fitted: {fs.b: 2}"),
		  "w.yaml:7:53: not a value of axis 'fs.b'" },
		/* the same point */
		{ SERIES("kind: calibrated, tolerance: 1, fitted: {fs.b: 40%}"),
		  "w.yaml:7:46: 20%, 40%, slow is fitted and judged: leave it "
		  "out with 'where'" },
		{ SERIES("kind: calibrated, tolerance: 1, where: {fs.a: 10%}, "
			 "fitted: [{fs.a: 20%}, {fs.b: 40%, fs.a: 10%}]"),
		  "w.yaml:7:66: 10%, 40%, slow is fitted and judged: leave it "
		  "out with 'where'" },
		{ SERIES("tolerance: 1, kind: input") "fitted: {fs.a: 10%}\n"
						      "expect:\n- {that: 'au "
						      "== "
						      "published.p[fs.a=10%] "
						      "+- 1', "
						      "kind: calibrated, "
						      "where: {fs.a: 20%}}\n",
		  "w.yaml:8:9: 10%, 40%, slow is fitted and judged: leave it "
		  "out with 'where'" },
		/* nothing to compare with */
		{ SERIES("where: {fs.a: 10%}") "expect: [{that: au < "
					       "published.p, kind: order}]\n",
		  "w.yaml:8:17: nothing is published at 20%, 40%, slow: leave "
		  "it out with 'where'" },
		{ SERIES("where: {fs.a: 10%}") "expect: [{that: 'au < "
					       "max(published.p[fs.a=*, "
					       "fs.b=*])', "
					       "kind: order}]\n",
		  "w.yaml:8:17: nothing is published at 20%, 40%, slow: leave "
		  "it out with 'where'" },
	};
	struct workload w;
	struct err err;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_int_equal(parse(bad[i].yaml, &w, &err), -EINVAL);
		assert_string_equal(err.text, bad[i].text);
		workload_free(&w);
	}
}

static void each_check_has_a_kind(void **state)
{
	static const struct {
		const char *yaml;
		enum evidence_kind kind;
	} good[] = {
		{ AXES "kind: input\nexpect: [that: au < 5]\n",
		  EVIDENCE_INPUT },
		{ AXES "kind: input\nexpect: [{that: au < 5, kind: self}]\n",
		  EVIDENCE_SELF },
		{ AXES "expect: [{rising: au, along: fs.b, kind: order}]\n",
		  EVIDENCE_ORDER },
		/* of what is published, with a tolerance */
		{ SERIES("") "expect: [{that: au == published.p +- 5%, kind: "
			     "prediction, reason: no}]\n",
		  EVIDENCE_PREDICTION },
		{ SERIES("") "expect: [{that: au == published.p +- 50%, kind: "
			     "prediction}]\n",
		  EVIDENCE_PREDICTION },
		/* fitted elsewhere, or at other points */
		{ SERIES("") "expect: [{that: au == published.p +- 5%, kind: "
			     "calibrated, fitted: one thread}]\n",
		  EVIDENCE_CALIBRATED },
		{ SERIES("") "fitted: {fs.b: 20%}\nexpect: [{that: au == "
			     "published.p +- 5%, kind: calibrated, where: "
			     "{fs.b: 40%}}]\n",
		  EVIDENCE_CALIBRATED },
		{ SERIES("") "expect: [{that: 'max(au[fs.a=*]) == max("
			     "published.p[fs.a=*, fs.b=20%]) +- 5%', kind: "
			     "calibrated, fitted: {fs.b: 40%}}]\n",
		  EVIDENCE_CALIBRATED },
	};
	struct workload w;
	struct err err;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		if (parse(good[i].yaml, &w, &err) < 0)
			fail_msg("%s", err.text);
		assert_int_equal(
			((struct expect *)w.expects.items)->evidence.kind,
			good[i].kind);
		workload_free(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(errors_say_where),
		cmocka_unit_test(each_check_has_a_kind),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
