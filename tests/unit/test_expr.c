/* SPDX-License-Identifier: MIT */
#include "tests/unit/test.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runner/spec/run_expr.h"

/* a = 2, b = 5, list[x=*] = 3, 1, 8; gone has no value. */
static int value(void *ctx, const struct expr_ref *ref, size_t i, double *ret)
{
	static const double list[] = { 3, 1, 8 };

	(void)ctx;
	if (!strcmp(ref->name, "a") || !strcmp(ref->name, "b")) {
		*ret = ref->name[0] == 'a' ? 2 : 5;
		return 0;
	}
	if (!strcmp(ref->name, "gone"))
		return -ENOENT;
	if (!strcmp(ref->name, "list") && ref->n_selects == 1) {
		if (i >= 3)
			return -ERANGE;
		*ret = strcmp(ref->selects[0].label, "*")
			       ? atof(ref->selects[0].label)
			       : list[i];
		return 0;
	}
	return -ENOENT;
}

static struct expr_result eval(const char *text)
{
	struct err err = { 0 };
	struct expr_result r;
	const char *missing;
	struct expr *e;
	size_t at;

	if (expr_parse(text, &e, &at, &err) < 0)
		fail_msg("%s: %zu: %s", text, at, err.text);
	assert_int_equal(expr_eval(e, value, NULL, &r, &missing), 0);
	expr_free(e);
	return r;
}

static void arithmetic(void **state)
{
	static const struct {
		const char *text;
		double wanted;
	} cases[] = {
		{ "1 + 2 * 3", 7 },
		{ "(1 + 2) * 3", 9 },
		{ "10 - 4 - 3", 3 },
		{ "12 / 3 / 2", 2 },
		{ "2 ^ 3 ^ 2", 512 },
		{ "-2 ^ 2", -4 },
		{ "2 * -3", -6 },
		{ "35%", .35 },
		{ "1.5e3", 1500 },
		{ "a*b", 10 },
		{ "ln(exp(2)) + sqrt(16) + abs(-1) + log2(8)", 10 },
		{ "floor(2.7) + ceil(2.1) + round(2.5)", 8 },
		{ "min(4, a, b) + max(1, b)", 7 },
		{ "mean(1, 2, 6)", 3 },
		{ "max(list[x=*])", 8 },
		{ "min(list[*], 2)", 1 },
		{ "sum(list[ x=* ])", 12 },
		{ "list[x=7] + list[ 9 ]", 16 },
		{ "sum(list[ x = * ]) + list[x = 7]", 19 },
		/* ln .65 = -0.430782916092454, not a constant to clang */
		{ ".5 + (.35 + .65 * ln(.65))",
		  .5 + .35 + .65 * -.430782916092454 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct expr_result r = eval(cases[i].text);

		assert_int_equal(r.n_sides, 1);
		assert_true(fabs(r.side[0] - cases[i].wanted) < 1e-12);
	}
}

static void comparisons(void **state)
{
	static const struct {
		const char *text;
		bool wanted;
	} cases[] = {
		{ "a < b", true },	     { "b < a", false },
		{ "a < a", false },	     { "a <= a", true },
		{ "b >= a", true },	     { "b > b", false },
		{ "1 < a < b < 9", true },   { "1 < a < 9 < b", false },
		{ "a == 2.1 +- 0.1", true }, { "a == 2.2 +- 0.1", false },
		{ "b == 5.2 +- 5%", true },  { "b == 4.7 +- 5%", false },
		{ "a==b-3+-0", true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		if (eval(cases[i].text).holds != cases[i].wanted)
			fail_msg("%s", cases[i].text);
	assert_true(fabs(eval("b == 5.2 +- 5%").slack[1] - .26) < 1e-12);
	assert_string_equal(eval("a <= b").op[1], "<=");
}

static int keep_ref(void *ctx, const struct expr_ref *ref, struct err *err)
{
	(void)err;
	*(const struct expr_ref **)ctx = ref;
	return -ECANCELED;
}

static const struct expr_ref *first_ref(const struct expr *e)
{
	const struct expr_ref *ref = NULL;

	expr_each(e, keep_ref, &ref, NULL);
	assert_non_null(ref);
	return ref;
}

static void blanks_are_of_no_name(void **state)
{
	struct expr *e;
	size_t at;

	(void)state;
	assert_int_equal(expr_parse("list[ x y = a b , c ]", &e, &at, NULL), 0);
	const struct expr_ref *ref = first_ref(e);

	assert_string_equal(ref->selects[0].axis, "x y");
	assert_string_equal(ref->selects[0].label, "a b");
	assert_null(ref->selects[1].axis);
	assert_string_equal(ref->selects[1].label, "c");
	expr_free(e);
}

/* "slru:protected=0.5" is no axis "slru:protected". */
static void a_plugin_with_an_option_is_a_label(void **state)
{
	static const char text[] = "list[slru:protected=0.5, p = 2q:ratio=3]";
	struct expr *e;
	size_t at;

	(void)state;
	assert_int_equal(expr_parse(text, &e, &at, NULL), 0);
	const struct expr_ref *ref = first_ref(e);

	assert_null(ref->selects[0].axis);
	assert_string_equal(ref->selects[0].label, "slru:protected=0.5");
	assert_string_equal(ref->selects[1].axis, "p");
	assert_string_equal(ref->selects[1].label, "2q:ratio=3");
	expr_free(e);
}

static void errors_have_their_place(void **state)
{
	static const struct {
		const char *text;
		size_t at;
		const char *wanted;
	} cases[] = {
		{ "", 0, "expected a number, a name or ( here" },
		{ "1 +", 3, "expected a number, a name or ( here" },
		{ "1 2", 2, "expected an operator here, not '2'" },
		{ "(1", 2, "a ) is missing" },
		{ "a == 2", 6, "== needs a tolerance: a == b +- 5%" },
		{ "a < 2 +- 3", 10, "a tolerance goes with ==" },
		{ "a == 2 +- b", 10,
		  "a tolerance is a number, or a number with %" },
		{ "foo(1)", 0,
		  "unknown function; known: ln log2 exp sqrt abs floor "
		  "ceil round min max sum mean" },
		{ "ln(1, 2)", 8, "this function takes one value" },
		{ "a[x=", 2, "expected a label or AXIS=LABEL in brackets" },
		{ "a[x = ]", 2, "expected a label or AXIS=LABEL in brackets" },
		{ "a[ = 1]", 3, "expected a label or AXIS=LABEL in brackets" },
		{ "a[]", 2, "expected a label or AXIS=LABEL in brackets" },
		{ "a < list[x=*]", 9,
		  "* is allowed only directly in min, max, mean or sum" },
		{ "max(list[*] + 1)", 9,
		  "* is allowed only directly in min, max, mean or sum" },
	};
	struct expr *e;
	size_t at;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct err err = { 0 };

		assert_int_equal(expr_parse(cases[i].text, &e, &at, &err),
				 -EINVAL);
		assert_string_equal(err.text, cases[i].wanted);
		assert_int_equal(at, cases[i].at);
	}
}

/* Nested too deeply, and every prefix of a long expression. */
static void any_text_is_survived(void **state)
{
	static const char long_one[] =
		"max(list[x=*], 3.5e2%) * (a + b)^-2 <= 1 == 2 +- 3%";
	char text[4000];
	struct err err;
	struct expr *e;
	size_t at;

	(void)state;
	for (size_t n = 0; n < sizeof(long_one); n++) {
		err = (struct err){ 0 };
		memcpy(text, long_one, n);
		text[n] = 0;
		if (expr_parse(text, &e, &at, &err) == 0)
			expr_free(e);
		else
			assert_true(err.text[0] && at <= n);
	}
	memset(text, '(', sizeof(text));
	text[sizeof(text) - 1] = 0;
	err = (struct err){ 0 };
	assert_int_equal(expr_parse(text, &e, &at, &err), -EINVAL);
	assert_string_equal(err.text, "nested too deeply");
	memset(text, '-', sizeof(text) - 1);
	assert_int_equal(expr_parse(text, &e, &at, &err), -EINVAL);
}

static void what_is_missing_is_named(void **state)
{
	struct expr_result r;
	const char *missing;
	struct expr *e;
	size_t at;

	(void)state;
	assert_int_equal(expr_parse("a < 2 * gone", &e, &at, NULL), 0);
	assert_true(expr_compares(e));
	assert_int_equal(expr_eval(e, value, NULL, &r, &missing), -ENOENT);
	assert_string_equal(missing, "gone");
	expr_free(e);
	assert_int_equal(expr_parse("a / (b - 5) < 1", &e, &at, NULL), 0);
	assert_int_equal(expr_eval(e, value, NULL, &r, &missing), -EDOM);
	expr_free(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arithmetic),
		cmocka_unit_test(comparisons),
		cmocka_unit_test(blanks_are_of_no_name),
		cmocka_unit_test(a_plugin_with_an_option_is_a_label),
		cmocka_unit_test(errors_have_their_place),
		cmocka_unit_test(any_text_is_survived),
		cmocka_unit_test(what_is_missing_is_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
