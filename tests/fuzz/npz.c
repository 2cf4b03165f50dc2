/* SPDX-License-Identifier: MIT */
#include "tests/fuzz/shard.h"

extern const struct format_ops format_npz;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	scan_shard(&format_npz, "npz", data, n);
	return 0;
}
