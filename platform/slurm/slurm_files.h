/* SPDX-License-Identifier: MIT */
/* The files of Slurm for the GPUs of a node. */
#ifndef GPEMU_PLATFORM_SLURM_SLURM_FILES_H
#define GPEMU_PLATFORM_SLURM_SLURM_FILES_H

#include <stdio.h>

#include "platform/node.h"

struct slurm_config {
	const struct node *node;
	const char *path;   /* of the node's file, for comments */
	const char *nodes;  /* their names, as Slurm writes them: n[0-3] */
	const char *folder; /* of these files, absolute */
	const char *run;    /* of locks and process IDs, absolute */
	const char *bin;    /* of gpemu-gpud and gpemu-smi, absolute */
	uint64_t cpus;	    /* of a node; 0: another line says it */
};

struct slurm_file {
	const char *name;
	unsigned mode; /* of permissions */
	void (*write)(const struct slurm_config *c, FILE *f);
};

/* Ends with a NULL name. */
extern const struct slurm_file slurm_files[];

#endif
