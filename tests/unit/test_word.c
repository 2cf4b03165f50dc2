/* SPDX-License-Identifier: MIT */
#include "common/word.h"

#include <errno.h>
#include <string.h>

#include "tests/unit/test.h"

static const char *const colours[] = { "red", "green", "blue" };

static void each_word_is_its_place(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++)
		assert_int_equal(WORD_FIND(colours, "colour", colours[i], NULL),
				 i);
}

static void other_words_are_refused_and_the_known_listed(void **state)
{
	/* no prefix, nothing longer, no other case, no empty word */
	static const char *const wrong[] = { "gree", "greens", "Green", "" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct err err = { 0 };
		char text[100];

		assert_int_equal(WORD_FIND(colours, "colour", wrong[i], &err),
				 -EINVAL);
		snprintf(text, sizeof(text),
			 "unknown colour '%s' (known: red green blue)",
			 wrong[i]);
		assert_string_equal(err.text, text);
	}
}

/* The text of an error is bounded. */
static void a_long_list_ends_in_dots(void **state)
{
	const char *words[200];
	struct err err = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		words[i] = "abcdefgh";
	assert_int_equal(WORD_FIND(words, "word", "x", &err), -EINVAL);
	assert_non_null(strstr(err.text, "abcdefgh ...)"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_word_is_its_place),
		cmocka_unit_test(other_words_are_refused_and_the_known_listed),
		cmocka_unit_test(a_long_list_ends_in_dots),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
