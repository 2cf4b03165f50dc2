/* SPDX-License-Identifier: MIT */
/* The mount's own trace. */
#include "cachesim/cachesim_private.h"
#include "tests/fuzz/sim.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	return fuzz_sim(sim_trace_parse_mount, data, n);
}
