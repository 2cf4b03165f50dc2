/* SPDX-License-Identifier: MIT */
/* Headers that cmocka needs before its own. */
#ifndef GPEMU_TESTS_UNIT_TEST_H
#define GPEMU_TESTS_UNIT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* cmocka's skip(), with the reason that tests/tally.py counts. */
#define skip_because(reason)                            \
	do {                                            \
		print_message("skipped: %s\n", reason); \
		skip();                                 \
	} while (0)

#endif
