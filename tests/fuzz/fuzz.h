/* SPDX-License-Identifier: MIT */
/* Shared by the fuzz targets. Each is one function that takes bytes: it may
 * reject them, but must not accept any that break an invariant. */
#ifndef GPEMU_TESTS_FUZZ_FUZZ_H
#define GPEMU_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* Holds with NDEBUG too. */
#define PROMISED(what)                                                   \
	do {                                                             \
		if (!(what)) {                                           \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, \
				__LINE__, #what);                        \
			abort();                                         \
		}                                                        \
	} while (0)

#endif
