/* SPDX-License-Identifier: MIT */
/* Templates of pages, by the smallest of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/json.h"
#include "runner/page/run_page.h"

static char *filled(const char *name, const char *doc)
{
	json_auto_t *j = json_loads(doc, 0, NULL);
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	assert_non_null(j);
	page_fill(name, j, f);
	fclose(f);
	return text;
}

static void test_texts_are_escaped(void **state)
{
	char *text = filled("head", "{\"name\": \"a\\u0001<b> & \\\"c\\\"\","
				    " \"title\": null}");

	(void)state;
	assert_non_null(strstr(text, "<title>a&lt;b&gt; &amp; &quot;c&quot; - "
				     "gpemu</title>\n<style>\n:root"));
	assert_non_null(strstr(text, "<h1></h1>\n"));
	free(text);
}

static void test_sections(void **state)
{
	char *text = filled("score", "{\"scores\": []}");

	(void)state;
	assert_string_equal(text, "");
	free(text);
	text = filled("score", "{\"scores\": [{\"about\": \"x\", \"checks\": 2,"
			       " \"states\": [2, 0]}]}");
	assert_non_null(strstr(text, "<tbody>\n<tr><td>x</td><td class=\"n\">2"
				     "</td><td class=\"n\">2</td><td class=\"n"
				     "\">0</td></tr>\n</tbody>"));
	free(text);
}

static void test_values_in_readable_form(void **state)
{
	char *text = filled("find", "{\"runs\": {\"gpemu\": {\"1\": 3}, "
				    "\"of\": [1, null]}}");

	(void)state;
	assert_non_null(strstr(text, "<dd>gpemu: 1: 3, of: [1, null]</dd>"));
	assert_non_null(strstr(text, "<figure>\nThe plot was not drawn.<"));
	assert_null(strstr(text, "{{"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_texts_are_escaped),
		cmocka_unit_test(test_sections),
		cmocka_unit_test(test_values_in_readable_form),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
