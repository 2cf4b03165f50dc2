/* SPDX-License-Identifier: MIT */
/* The cache of a mount from its configuration, as far as estimates and records
 * need it. gpemu-fs itself checks the texts. */
#ifndef GPEMU_RUNNER_CELL_RUN_TIERS_H
#define GPEMU_RUNNER_CELL_RUN_TIERS_H

#include <jansson.h>

#include "runner/spec/run_workload.h"

struct run_tier {
	char *text;	     /* owns the next two */
	const char *storage; /* a storage profile; NULL: memory */
	const char *policy;  /* with its options */
	struct units_capacity size;
};

struct run_tiers {
	struct run_tier *v;
	size_t n;
};

/* From the keys of gpemu-fs: a policy and a size are one tier. Free with
 * run_tiers_fini, failed or not. -ENOMEM. */
int run_tiers_of(const struct workload *w, const json_t *fs,
		 struct run_tiers *ret);
void run_tiers_fini(struct run_tiers *t);

#endif
