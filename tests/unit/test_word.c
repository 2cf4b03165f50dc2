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
	static const char *const wrong[] = { "mauve", "colour", "greenhouse",
					     "" };

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

/* Refused, but the user may have meant: */
static void the_nearest_word_is_named(void **state)
{
	static const struct {
		const char *given, *nearest;
	} c[] = {
		{ "gree", "green" },  { "greens", "green" },
		{ "Green", "green" }, { "gr-een", "green" },
		{ "geren", "green" }, { "bleu", "blue" },
		{ "rde", "red" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(c); i++) {
		struct err err = { 0 };
		char text[100];

		assert_int_equal(WORD_FIND(colours, "colour", c[i].given, &err),
				 -EINVAL);
		snprintf(text, sizeof(text),
			 "unknown colour '%s'; did you mean '%s'? "
			 "(known: red green blue)",
			 c[i].given, c[i].nearest);
		assert_string_equal(err.text, text);
	}
}

/* The table of synonyms, where our word is among the known ones. */
static void another_name_for_the_same_is_understood(void **state)
{
	static const char *const orders[] = { "shuffle", "torch" };
	static const char *const policies[] = { "lru", "random" };
	struct err err = { 0 }, torch = { 0 }, none = { 0 };

	(void)state;
	WORD_FIND(orders, "order", "Random", &err);
	assert_non_null(strstr(err.text, "did you mean 'shuffle' (a new"));
	WORD_FIND(orders, "order", "distributed_sampler", &torch);
	assert_non_null(strstr(torch.text, "did you mean 'torch'?"));
	WORD_FIND(policies, "policy", "webdataset", &none);
	assert_null(strstr(none.text, "did you mean"));
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
		cmocka_unit_test(the_nearest_word_is_named),
		cmocka_unit_test(another_name_for_the_same_is_understood),
		cmocka_unit_test(a_long_list_ends_in_dots),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
