/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "emu/profile/profile_gpu.h"
#include "tests/fuzz/fuzz.h"

/* Measured rows come out unchanged, on either side of a jump. */
static void costs(const struct gpu_profile *p, const struct gpu_model *m)
{
	const struct gpu_row *row = m->rows.items;
	uint64_t jump = gpu_profile_jump_batch(p, m);
	struct gpu_cost c;

	for (size_t i = 0; i < m->rows.n; i++) {
		gpu_profile_cost(p, m, row[i].batch, &c);
		PROMISED(c.origin == GPU_MEASURED);
		PROMISED(fabs((double)c.transfer_pageable_ns / 1e6 -
			      row[i].transfer_ms) <= 2e-6);
	}
	if (jump)
		gpu_profile_cost(p, m, jump, &c);
	gpu_profile_cost(p, m, jump + 1, &c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct gpu_profile p;
	struct err err = { 0 };
	int r = gpu_profile_parse((const char *)data, n, "x", &p, &err);

	PROMISED(r == 0 || (r < 0 && err.text[0]));
	for (size_t i = 0; r == 0 && i < p.models.n; i++)
		costs(&p, (const struct gpu_model *)p.models.items + i);
	gpu_profile_free(&p);
	return 0;
}
