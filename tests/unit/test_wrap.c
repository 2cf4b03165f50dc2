/* SPDX-License-Identifier: MIT */
#include "common/text/wrap.h"

#include "tests/unit/test.h"

static void wraps(const char *text, size_t width, const char *want)
{
	char got[200] = "";
	FILE *f = fmemopen(got, sizeof(got), "w");

	assert_int_equal(wrap_width(f), 0); /* no terminal */
	wrap_print(text, 6, width, f);
	fclose(f);
	assert_string_equal(got, want);
}

static void lines_break_at_spaces(void **state)
{
	(void)state;
	wraps("WARN  the GPU: one two", 0, "WARN  the GPU: one two\n");
	wraps("WARN  the GPU: one two", 22, "WARN  the GPU: one two\n");
	wraps("WARN  the GPU: one two", 21, "WARN  the GPU: one\n      two\n");
	wraps("WARN  the GPU: one two", 14, "WARN  the GPU:\n      one two\n");
}

static void a_long_word_has_its_line(void **state)
{
	(void)state;
	wraps("WARN  a /a/very/long/path b", 10,
	      "WARN  a\n      /a/very/long/path\n      b\n");
	wraps("", 10, "\n");
	wraps("/a/very/long/path", 10, "/a/very/long/path\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_break_at_spaces),
		cmocka_unit_test(a_long_word_has_its_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
