/* SPDX-License-Identifier: MIT */
/* Lines of the log, and the characters allowed in them. */
#include "tests/unit/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"

static char path[] = "/tmp/gpemu-log-XXXXXX";
static char errors[] = "/tmp/gpemu-errors-XXXXXX";

/* The last line, without the time before it. */
static const char *last(void)
{
	static char line[8192];
	FILE *f = fopen(path, "re");
	char *text;

	assert_non_null(f);
	line[0] = '\0';
	while (fgets(line, sizeof(line), f))
		;
	fclose(f);
	text = strstr(line, "]: ");
	assert_non_null(text);
	assert_int_equal(line[strlen(line) - 1], '\n');
	line[strlen(line) - 1] = '\0';
	return text + 3;
}

#define WRITES(name, want)                         \
	do {                                       \
		log_warn("%s: gone", name);        \
		assert_string_equal(last(), want); \
	} while (0)

static void what_controls_a_terminal_is_escaped(void **state)
{
	(void)state;
	WRITES("a b~", "a b~: gone");
	WRITES("\x1b[2J\x07", "\\x1b[2J\\x07: gone");
	WRITES("two\nlines\r\t", "two\\x0alines\\x0d\\x09: gone");
	WRITES("\x7f", "\\x7f: gone");
	/* CSI as one character, and as one byte */
	WRITES("\xc2\x9b"
	       "2J",
	       "\\xc2\\x9b2J: gone");
	WRITES("\x9b"
	       "2J",
	       "\\x9b2J: gone");
}

static void other_characters_stay(void **state)
{
	(void)state;
	WRITES("K\xc3\xa4se \xe2\x82\xac \xf0\x9f\x98\x80 \xc2\xa0",
	       "K\xc3\xa4se \xe2\x82\xac \xf0\x9f\x98\x80 \xc2\xa0: gone");
	WRITES("a\\x1b", "a\\x1b: gone");
}

static void what_is_no_character_is_escaped(void **state)
{
	(void)state;
	WRITES("\xff\xfe", "\\xff\\xfe: gone");
	WRITES("\xe2\x82", "\\xe2\\x82: gone");
	/* ESC, overlong */
	WRITES("\xc0\x9b\xe0\x80\x9b", "\\xc0\\x9b\\xe0\\x80\\x9b: gone");
	/* half of a pair; above the last code point */
	WRITES("\xed\xa0\x80", "\\xed\\xa0\\x80: gone");
	WRITES("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80: gone");
}

static void a_long_line_is_cut(void **state)
{
	char name[4000];

	(void)state;
	memset(name, '\x01', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	log_warn("%s", name);
	assert_true(strlen(last()) > 1000);
	assert_non_null(strstr(last(), "\\x01\\x01"));
	assert_null(strchr(last(), '\x01'));
}

/* A parent tells them from other lines. */
static void errors_alone_are_in_a_file_too(void **state)
{
	FILE *f = fopen(errors, "re");
	char text[200] = "";

	(void)state;
	assert_non_null(f);
	log_warn("a warning");
	log_error("the \x07 cause");
	log_info("not shown");
	log_error("what followed");
	assert_true(fread(text, 1, sizeof(text) - 1, f) > 0);
	fclose(f);
	assert_string_equal(text,
			    "test: the \\x07 cause\ntest: what followed\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_controls_a_terminal_is_escaped),
		cmocka_unit_test(other_characters_stay),
		cmocka_unit_test(what_is_no_character_is_escaped),
		cmocka_unit_test(a_long_line_is_cut),
		cmocka_unit_test(errors_alone_are_in_a_file_too),
	};
	int fd = mkstemp(path), errors_fd = mkstemp(errors), r;

	if (fd < 0 || errors_fd < 0 || setenv("GPEMU_ERRORS", errors, 1) < 0)
		return 1;
	close(fd);
	close(errors_fd);
	log_init("test", LOG_LEVEL_WARN);
	if (log_to_file(path) < 0)
		return 1;
	r = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	unlink(errors);
	return r;
}
