/* SPDX-License-Identifier: MIT */
#include "emu/profile/profile_dataset.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct dataset_profile p;
	struct err err = { 0 };
	int r = dataset_profile_parse((const char *)data, n, "x", &p, &err);

	PROMISED(r == 0 || (r < 0 && err.text[0]));
	dataset_profile_free(&p);
	return 0;
}
