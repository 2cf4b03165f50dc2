/* SPDX-License-Identifier: MIT */
/* The mount's own trace. */
#include "tests/fuzz/sim.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	fuzz_sim("mount", data, n, 0);
	return 0;
}
