/* SPDX-License-Identifier: MIT */
/*
 * Failures of a simulated run. Times between them are exponential. Each ends
 * the whole job; after a restart it reads its last complete checkpoint, and
 * does again what it had done since, in the time that took before. It may fail
 * meanwhile. So a failure is a delay, which begins at the end of a step.
 */
#ifndef GPEMU_LOADER_SIM_SIM_FAIL_H
#define GPEMU_LOADER_SIM_SIM_FAIL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/rng.h"

struct sim_fail {
	uint64_t mtbf_ns; /* 0: no failures */
	uint64_t down_ns; /* of each, without the work done again */
	struct rng rng;
	uint64_t next_ns;
	struct {
		uint64_t ready_ns; /* all its files are complete */
		uint64_t state_ns; /* training went on */
	} saved[2];		   /* the last two; ready_ns 0: the begin */
	uint64_t n, delay_ns;
};

/* The mean between failures, > 0, and what each costs; the run begins at 0. */
void sim_fail_init(struct sim_fail *f, uint64_t mtbf_ns, uint64_t down_ns,
		   uint64_t seed);
/* A checkpoint is complete at `ready_ns`, not before an earlier one. */
void sim_fail_saved(struct sim_fail *f, uint64_t state_ns, uint64_t ready_ns);
/* When a step is really over that would be at `end`. UINT64_MAX: never, as
 * failures are too frequent. */
uint64_t sim_fail_until(struct sim_fail *f, uint64_t end);
/* {n, delay_s} */
json_t *sim_fail_json(const struct sim_fail *f);

#endif
