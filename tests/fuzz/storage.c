/* SPDX-License-Identifier: MIT */
/* A storage profile, and the device that it describes. */
#include "common/util.h"
#include "emu/profile/profile_storage.h"
#include "fs/device/device.h"
#include "tests/fuzz/fuzz.h"

static void ask_device(const struct storage_profile *p)
{
	struct device *d;
	uint64_t now = 0;

	if (device_new(p, 1, &d) < 0)
		return;
	for (unsigned i = 0; i < 64; i++) {
		enum storage_op op = (enum storage_op)(i % STORAGE_N_OPS);
		uint64_t bytes = op == STORAGE_READ || op == STORAGE_WRITE
					 ? (uint64_t)i << (12 + i % 3 * 8)
					 : 0;

		PROMISED(device_schedule(d, op, i % 3, i << 14, bytes, now) >=
			 now);
		now += 1000;
	}
	device_free(d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct storage_profile *p = NULL;
	struct err err = { 0 };
	int r = storage_profile_parse((const char *)data, n, "x", &p, &err);

	PROMISED(r == 0 || (r < 0 && err.text[0]));
	if (r == 0)
		ask_device(p);
	storage_profile_free(p);
	return 0;
}
