/* SPDX-License-Identifier: MIT */
#include "common/text/columns.h"

#include <string.h>

#include "tests/unit/test.h"

/* An axis and two metrics with their ranges. */
static void fill(struct columns *c)
{
	static const char *const text[3][3] = {
		{ "policy", "hits", "seconds" },
		{ "lru", "41.2\n(40-42)", "8.1" },
		{ "minio", "50", "9.75\n(9.5-10.2)" },
	};

	assert_int_equal(columns_init(c, 3, 3), 0);
	c->heads = 1;
	c->words = 1;
	for (size_t row = 0; row < 3; row++)
		for (size_t i = 0; i < 3; i++)
			snprintf(columns_at(c, row, i), COLUMNS_TEXT, "%s",
				 text[row][i]);
}

static void prints(size_t width, const char *want)
{
	char got[600] = "";
	FILE *f = fmemopen(got, sizeof(got), "w");
	struct columns c;

	fill(&c);
	columns_print(&c, width, f);
	columns_fini(&c);
	fclose(f);
	assert_string_equal(got, want);
}

static void a_range_stands_beside_its_value_where_all_fits(void **state)
{
	static const char want[] = "policy          hits          seconds\n"
				   "-------------------------------------\n"
				   "lru     41.2 (40-42)              8.1\n"
				   "minio             50  9.75 (9.5-10.2)\n";

	(void)state;
	prints(0, want);
	prints(strcspn(want, "\n"), want);
}

static void a_range_goes_below_where_it_does_not(void **state)
{
	static const char want[] = "policy     hits     seconds\n"
				   "---------------------------\n"
				   "lru        41.2         8.1\n"
				   "        (40-42)\n"
				   "minio        50        9.75\n"
				   "                 (9.5-10.2)\n";

	(void)state;
	prints(36, want);
	prints(strcspn(want, "\n"), want);
}

static void columns_that_do_not_fit_form_a_second_table(void **state)
{
	static const char want[] = "policy     hits\n"
				   "---------------\n"
				   "lru        41.2\n"
				   "        (40-42)\n"
				   "minio        50\n"
				   "\n"
				   "policy     seconds\n"
				   "------------------\n"
				   "lru            8.1\n"
				   "minio         9.75\n"
				   "        (9.5-10.2)\n";

	(void)state;
	prints(26, want);
	prints(18, want);
	/* a column for itself may be wider */
	prints(5, want);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_range_stands_beside_its_value_where_all_fits),
		cmocka_unit_test(a_range_goes_below_where_it_does_not),
		cmocka_unit_test(columns_that_do_not_fit_form_a_second_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
