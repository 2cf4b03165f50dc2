/* SPDX-License-Identifier: MIT */
/* The machine that gpemu-train emulates with the options of a job. */
#ifndef GPEMU_RUNNER_CELL_RUN_MACHINE_H
#define GPEMU_RUNNER_CELL_RUN_MACHINE_H

#include "emu/node/profile_node.h"
#include "emu/profile/profile_gpu.h"
#include "runner/spec/run_workload.h"

/* A key of a job or mount, or the default of `program` (w->defaults); "" and 0:
 * unset. Borrowed. */
const char *config_text(const struct workload *w, const json_t *config,
			const char *program, const char *key);
double config_number(const struct workload *w, const json_t *config,
		     const char *program, const char *key);
bool config_flag(const struct workload *w, const json_t *config,
		 const char *program, const char *key);

struct machine {
	struct node_profile node; /* all 0: no node */
	const char *gpu;	  /* borrowed from the workload or `node` */
	const char
		*prep; /* profile of --prep emulated; NULL: other transforms */
	const char *prep_time; /* instead of that profile; NULL: not given */
	const char *prep_gpu; /* profile of transforms on the GPU; NULL: none */
	double gpus;	      /* of one node */
	double nodes;	      /* sharing an epoch */
	double workers;
	double cores; /* virtual ones; 0: none */
	double depth; /* reads in flight */
};

/* The machine as gpemu-train, or for the GPU the cell's gpemu-gpud, sets it up.
 */
void machine_of(const struct workload *w, const struct cell *cell,
		const struct cell_job *job, struct machine *ret);
void machine_fini(struct machine *m);

/* The model of a job in the profile of its GPU, as gpemu-train finds it: see
 * variant_find. */
const struct gpu_model *machine_model(const struct workload *w,
				      const json_t *train,
				      const struct gpu_profile *p,
				      struct err *err);

/* The transforms of a batch on a GPU. */
uint64_t machine_prep_gpu_ns(const struct machine *m, uint64_t batch);

/*
 * Checks of key combinations, which no program can do for one key: every model
 * must be in the tables of its GPU, every synth: must have a profile. -EINVAL
 * with its position; errors of a GPU profile; -ENOMEM.
 */
int machine_check(const struct workload *w, struct err *err);

#endif
