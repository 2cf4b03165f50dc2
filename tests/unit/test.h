/* SPDX-License-Identifier: MIT */
/* What cmocka wants included before it. */
#ifndef GPEMU_TESTS_UNIT_TEST_H
#define GPEMU_TESTS_UNIT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
