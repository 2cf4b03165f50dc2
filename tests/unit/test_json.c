/* SPDX-License-Identifier: MIT */
#include "common/json.h"

#include <string.h>

#include "common/util.h"
#include "tests/unit/test.h"

static void check(const char *bytes, const char *want)
{
	json_auto_t *j = json_bytes(bytes);

	assert_non_null(j);
	assert_string_equal(json_string_value(j), want);
}

static void utf8_stays_as_it_is(void **state)
{
	static const char *const texts[] = {
		"",
		"/data/train",
		"a\\xffb",
		"\xc3\xa9",
		"\xe2\x82\xac",
		"\xf0\x9f\x98\x80",
		"tab\t, quote\"",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		check(texts[i], texts[i]);
	assert_null(json_bytes(NULL));
}

static void other_bytes_are_escaped_and_none_is_dropped(void **state)
{
	(void)state;
	check("\xff", "\\xff");
	check("caf\xe9/", "caf\\xe9/");
	/* characters next to them are kept; a backslash stays
	 * distinguishable */
	check("\xc3\xa9\xe9\\x", "\xc3\xa9\\xe9\\\\x");
	/* truncated, overlong, a surrogate */
	check("\xe2\x82", "\\xe2\\x82");
	check("\xc0\xaf", "\\xc0\\xaf");
	check("\xed\xa0\x80", "\\xed\\xa0\\x80");
}

static void every_byte_comes_back(void **state)
{
	char all[256], want[4 * 256 + 1], *to = want;

	(void)state;
	for (unsigned i = 1; i < 256; i++)
		all[i - 1] = (char)i;
	all[255] = 0;
	for (unsigned i = 1; i < 256; i++)
		if (i >= 0x80)
			to += sprintf(to, "\\x%02x", i);
		else if (i == '\\')
			to += sprintf(to, "\\\\");
		else
			*to++ = (char)i;
	*to = 0;
	check(all, want);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(utf8_stays_as_it_is),
		cmocka_unit_test(other_bytes_are_escaped_and_none_is_dropped),
		cmocka_unit_test(every_byte_comes_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
