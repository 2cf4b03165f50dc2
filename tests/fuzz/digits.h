/* SPDX-License-Identifier: MIT */
/* A count in a few bytes makes millions of things, which takes long and finds
 * nothing: such inputs are left out. */
#ifndef GPEMU_TESTS_FUZZ_DIGITS_H
#define GPEMU_TESTS_FUZZ_DIGITS_H

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool has_large_number(const uint8_t *data, size_t n)
{
	size_t digits = 0;

	for (size_t i = 0; i < n; i++) {
		digits = isdigit(data[i]) ? digits + 1 : 0;
		if (digits > 4)
			return true;
	}
	return false;
}

#endif
