/* SPDX-License-Identifier: MIT */
/* Megatron's index: what is accepted can be read to its end. */
#include "loader/format/mmidx.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static int32_t tokens[MMIDX_MOST];
	static int64_t offset[MMIDX_MOST];
	struct err err = { 0 };
	struct mmidx x;
	struct peek p;
	int r;

	peek_init_memory(&p, data, n);
	r = mmidx_parse(&p, &x, &err);
	PROMISED(r == 0 || (r < 0 && err.text[0]));
	for (uint64_t i = 0; r == 0 && i < x.n; i += MMIDX_MOST) {
		uint64_t left = x.n - i;

		PROMISED(mmidx_read(&p, &x, i,
				    left < MMIDX_MOST ? left : MMIDX_MOST,
				    tokens, offset, &err) == 0);
	}
	return 0;
}
