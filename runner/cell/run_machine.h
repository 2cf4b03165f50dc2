/* SPDX-License-Identifier: MIT */
/* What gpemu-train emulates with the options of a job, as far as it can be told
 * without a run. */
#ifndef GPEMU_RUNNER_CELL_RUN_MACHINE_H
#define GPEMU_RUNNER_CELL_RUN_MACHINE_H

#include "runner/spec/run_workload.h"

/* A key of a job or mount, or the default of `program` (w->defaults); "" and 0:
 * unset. Borrowed. */
const char *config_text(const struct workload *w, const json_t *config,
			const char *program, const char *key);
double config_number(const struct workload *w, const json_t *config,
		     const char *program, const char *key);

/* The GPU of a job, or of the cell's gpemu-gpud; malloc'ed. NULL: no memory. */
char *machine_gpu(const struct workload *w, const struct cell *cell,
		  const struct cell_job *job);

/*
 * Checks of key combinations, which no program can do for one key: every model
 * must be in the tables of its GPU, every synth: must have a profile. -EINVAL
 * with its position; errors of a GPU profile; -ENOMEM.
 */
int machine_check(const struct workload *w, struct err *err);

#endif
