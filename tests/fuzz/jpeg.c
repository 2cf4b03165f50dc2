/* SPDX-License-Identifier: MIT */
/* An image, a JPEG or a PNG, through prep_decode: broken, or a sample of finite
 * values. */
#include <errno.h>
#include <math.h>

#include "loader/prep/prep.h"
#include "loader/prep/unusable.h"
#include "tests/fuzz/fuzz.h"

enum { SIDE = 32, VALUES = 3 * SIDE * SIDE };

extern const struct prep_ops prep_decode;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const struct prep_config config = { .side = SIDE };
	static float out[VALUES] __attribute__((aligned(64)));
	static void *state;
	struct rng rng = rng_stream(n, "prep", 0);
	struct err err = { 0 };
	int r;

	if (!state) {
		state = calloc(1, prep_decode.plugin.state_size);
		PROMISED(state && prep_decode.init(state, &config, &err) == 0);
	}
	for (int i = 0; i < VALUES; i++)
		out[i] = NAN;
	r = prep_decode.run(state, data, n, &rng, out);
	PROMISED(r <= 0 && unusable_text(r));
	for (int i = 0; i < VALUES; i++)
		PROMISED(isfinite(out[i]) && (r == 0 || out[i] == 0));
	return 0;
}
