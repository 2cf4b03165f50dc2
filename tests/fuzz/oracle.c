/* SPDX-License-Identifier: MIT */
#include "tests/fuzz/sim.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	fuzz_sim("oracleGeneral", data, n, n % 2 ? 0 : 29);
	return 0;
}
