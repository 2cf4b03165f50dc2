/* SPDX-License-Identifier: MIT */
/* The machine that a job's gpemu-train emulates, by its options. */
#ifndef GPEMU_RUNNER_CELL_RUN_MACHINE_H
#define GPEMU_RUNNER_CELL_RUN_MACHINE_H

#include "emu/node/profile_node.h"
#include "runner/spec/run_workload.h"

/* A key of a job or mount, or what `program` takes without it (w->defaults);
 * "" and 0: nothing. Borrowed. */
const char *config_text(const struct workload *w, const json_t *config,
			const char *program, const char *key);
double config_number(const struct workload *w, const json_t *config,
		     const char *program, const char *key);
bool config_flag(const struct workload *w, const json_t *config,
		 const char *program, const char *key);

struct machine {
	struct node_profile node; /* all 0: none is named */
	const char *gpu;	  /* borrowed from the workload or `node` */
	const char *prep;     /* profile of --prep emulated; NULL: another */
	const char *prep_gpu; /* whose part on the GPU counts; NULL: none */
	double gpus;	      /* of one node */
	double nodes;	      /* that share an epoch */
	double workers;
	double cores; /* virtual ones; 0: none */
	double depth; /* reads on their way */
};

/* As gpemu-train, or for its GPU the gpemu-gpud of the cell, would have it. */
void machine_of(const struct workload *w, const struct cell *cell,
		const struct cell_job *job, struct machine *ret);
void machine_fini(struct machine *m);

/* What a GPU of it does to a batch before it computes. */
uint64_t machine_prep_gpu_ns(const struct machine *m, uint64_t batch);

/*
 * What no program can say of a key alone: is every model in the tables of its
 * GPU, has every synth: a profile? -EINVAL with its place; errors of a GPU's
 * profile; -ENOMEM.
 */
int machine_check(const struct workload *w, struct err *err);

#endif
