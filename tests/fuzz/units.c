/* SPDX-License-Identifier: MIT */
/* Sizes, durations and capacities: a value that was read is written exactly. */
#include <math.h>
#include <string.h>

#include "common/units.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char *s = strndup((const char *)data, n), buf[UNITS_TEXT];
	struct units_capacity c, c_again;
	uint64_t v, again;
	double x;

	PROMISED(s);
	if (units_parse_size(s, &v) == 0) {
		PROMISED(units_parse_size(units_exact_size(v, buf), &again) ==
			 0);
		PROMISED(again == v);
	}
	if (units_parse_duration(s, &v) == 0) {
		PROMISED(units_parse_duration(units_exact_duration(v, buf),
					      &again) == 0);
		PROMISED(again == v);
	}
	if (units_parse_capacity(s, &c) == 0) {
		PROMISED(units_parse_capacity(units_exact_capacity(&c, buf),
					      &c_again) == 0);
		PROMISED(c.fraction < 0 ? c_again.fraction < 0 &&
						  c_again.bytes == c.bytes
					: c_again.fraction == c.fraction);
		units_capacity_bytes(&c, UINT64_MAX);
	}
	if (units_parse_double(s, &x) == 0)
		PROMISED(isfinite(x));
	free(s);
	return 0;
}
