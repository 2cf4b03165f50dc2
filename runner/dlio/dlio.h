/* SPDX-License-Identifier: MIT */
/*
 * Workloads of DLIO, and of MLPerf Storage, which runs it, as workloads of
 * ours: gpemu-run import.
 *
 *	YAML of DLIO --- dlio_parse ---> struct dlio --- dlio_write ---> YAML of
 *					     |			        ours
 *					  its notes: what could not be taken
 *
 * A step of DLIO is a sleep, its samples are bytes that it reads and drops, and
 * nothing is copied to a device: the GPU `dlio`, --step-time and the dataset
 * `records` are that. Source of the meaning of keys: dlio_benchmark/utils/
 * config.py and data_loader/torch_data_loader.py, commit e1919d7.
 */
#ifndef GPEMU_RUNNER_DLIO_DLIO_H
#define GPEMU_RUNNER_DLIO_DLIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/conf/conf_tree.h"
#include "emu/profile/dist.h"

/* What could not be taken, and why; one line. */
struct dlio_note {
	unsigned line, column;
	char *text;
};

struct dlio {
	char *model, *framework, *format, *data_loader;
	char *sample_shuffle, *file_shuffle;
	bool train, checkpoint, odirect;
	double record_bytes, record_sd, resize; /* resize 0: not given */
	double files, per_file, folders;
	double batch, threads, prefetch;
	struct dist_time prep, step;	      /* kind_name NULL: not given */
	double prep_sd, step_sd;	      /* seconds; beside them */
	double epochs, steps;		      /* steps 0: all */
	double seed;			      /* -1: not given */
	double first, between, steps_between; /* of checkpoints; epochs */
	double model_bytes, model_size;	      /* 0: not given */
	double every, checkpoint_bytes;	      /* steps between them; 0: none */
	double au;			      /* share; 0: not given */
	struct dlio_note *notes;
	size_t n_notes;
};

/*
 * bytes -> struct; safe on any input. -EINVAL with "name:line:column: what",
 * also of what Hydra would have to resolve; -ENOMEM. Free with dlio_free,
 * failed or not.
 */
int dlio_parse(const char *bytes, size_t n, const char *name, struct dlio *ret,
	       struct err *err);
void dlio_free(struct dlio *d);

/* The workload, with the notes as comments; `path` is that of the original.
 * -ENOMEM; errors of the stream are the caller's. */
int dlio_write(const struct dlio *d, const char *path, FILE *f);

#endif
