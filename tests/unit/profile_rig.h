/* SPDX-License-Identifier: MIT */
/* Steps of a profile of a GPU. */
#ifndef GPEMU_TESTS_UNIT_PROFILE_RIG_H
#define GPEMU_TESTS_UNIT_PROFILE_RIG_H

#include "tests/unit/test.h"

#include "emu/profile/profile_gpu.h"

static inline struct gpu_cost cost(const struct gpu_profile *p,
				   const char *model, uint64_t batch)
{
	const struct gpu_model *m = gpu_profile_model(p, model, NULL);
	struct gpu_cost c;

	assert_non_null(m);
	gpu_profile_cost(p, m, batch, &c);
	return c;
}

#endif
