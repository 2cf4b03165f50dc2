/* SPDX-License-Identifier: MIT */
/* Messages on gpemu-gpud's socket, on either end. */
#include <string.h>

#include "emu/gpu/gpud_proto.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static uint8_t again[GPUD_MAX_REQUEST + GPUD_MAX_MESSAGE];

	while (n) {
		struct gpud_msg m;
		struct err err = { 0 };
		int r = gpud_decode(data, n, GPUD_MAX_MESSAGE, &m, &err);

		PROMISED((r < 0) == (err.text[0] != '\0'));
		if (r <= 0)
			break;
		PROMISED((size_t)r <= n && gpud_size(&m) == (size_t)r);
		gpud_encode(&m, again);
		PROMISED(!memcmp(again, data, (size_t)r));
		PROMISED(gpud_type_name(m.type));
		data += r;
		n -= (size_t)r;
	}
	return 0;
}
