/* SPDX-License-Identifier: MIT */
/* Megatron's index: what is accepted can be read to its end, and the documents
 * are its sequences, each in one. */
#include "loader/format/mmidx.h"
#include "tests/fuzz/fuzz.h"

static void documents(struct peek *p, const struct mmidx *x, struct err *err)
{
	static uint64_t bound[MMIDX_MOST + 1];
	uint64_t end = 0;
	int r = 0;

	for (uint64_t i = 0; r == 0 && i < x->documents; i += MMIDX_MOST) {
		uint64_t left = x->documents - i;
		size_t n = left < MMIDX_MOST ? left : MMIDX_MOST;

		r = mmidx_bounds(p, x, i, n, bound, err);
		for (size_t k = 0; r == 0 && k < n; k++) {
			PROMISED(bound[k] == end && bound[k + 1] >= end &&
				 bound[k + 1] <= x->n);
			end = bound[k + 1];
		}
	}
	PROMISED(r == 0 ? end == x->n : r < 0 && err->text[0]);
}

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
	if (r == 0)
		documents(&p, &x, &err);
	return 0;
}
