/* SPDX-License-Identifier: MIT */
#include "tests/fuzz/sim.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	return fuzz_sim(sim_trace_parse_csv, data, n);
}
