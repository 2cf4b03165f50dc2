/* SPDX-License-Identifier: MIT */
#include "emu/profile/profile_prep.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct prep_profile p;
	struct err err = { 0 };
	int r = prep_profile_parse((const char *)data, n, "x", &p, &err);

	PROMISED(r == 0 || (r < 0 && err.text[0]));
	prep_profile_free(&p);
	return 0;
}
