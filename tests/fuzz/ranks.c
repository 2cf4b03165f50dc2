/* SPDX-License-Identifier: MIT */
/* The files of the ranks of a run (loader/checkpoint/ranks.h). */
#include <errno.h>

#include "loader/checkpoint/ranks.h"
#include "tests/fuzz/fuzz.h"

enum { WORLD = 4 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct ranks r = { .path = "folder", .rank = 1, .world = WORLD };
	json_t *j =
		json_loadb((const char *)data, n, JSON_DISABLE_EOF_CHECK, NULL);
	struct err err = { 0 };
	int e = ranks_take(&r, j, &err);
	const json_t *one;
	size_t i;

	PROMISED(e == 0 || e == -EAGAIN || e == -EINVAL);
	PROMISED((e == -EINVAL) == (err.text[0] != '\0'));
	PROMISED(e == 0 || (!r.agreed && !r.joined));
	PROMISED(r.agreed == (r.joined != NULL));
	PROMISED(r.step <= INT64_MAX);
	json_array_foreach (r.joined, i, one)
		PROMISED(json_integer_value(one) >= 0 && json_is_integer(one));
	PROMISED(r.agreed || !ranks_follows(&r));
	json_decref(r.joined);
	json_decref(j);
	return 0;
}
