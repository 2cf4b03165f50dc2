/* SPDX-License-Identifier: MIT */
/*
 * What a GPU gains from concurrent jobs, or loses where the driver switches
 * between them: with k of them it does the work of `speedup` GPUs with one job
 * each, and each job progresses at speedup / k of its own speed.
 */
#ifndef GPEMU_EMU_PROFILE_PROFILE_SHARE_H
#define GPEMU_EMU_PROFILE_PROFILE_SHARE_H

#include <stdbool.h>
#include <stdint.h>

#include "emu/profile/profile.h"

struct share_row {
	uint64_t jobs;
	double speedup;
};

struct share_profile {
	char *name;
	char *source;
	char *notes;
	bool verified;	       /* every number was read at its source */
	struct conf_list gpus; /* char *: by the vendor; their default where
				* jobs take turns */
	struct conf_list rows; /* struct share_row: jobs 1, 2, 3, ... */
};

PROFILE_DECLARE(share);
/* That of jobs that take turns on such a GPU (struct gpu_profile: name): 1; 0:
 * there is none, and *ret is empty. Errors as share_profile_load. */
int share_profile_of_gpu(const char *gpu, struct share_profile *ret,
			 struct err *err);

/*
 * The speedup of `jobs` >= 1 concurrent jobs; constant beyond the last row. An
 * empty table means time slicing: 1.
 */
double share_profile_speedup(const struct share_profile *p, uint64_t jobs);

#endif
