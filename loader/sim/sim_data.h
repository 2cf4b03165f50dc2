/* SPDX-License-Identifier: MIT */
/*
 * The dataset of a simulation: the sizes of the files of a SOURCE of gpemu-fs
 * (a folder, pack:FILE, or synth:DATASET), none of which is read. A sample is a
 * file, numbered as the loader numbers them behind the mount.
 */
#ifndef GPEMU_LOADER_SIM_SIM_DATA_H
#define GPEMU_LOADER_SIM_SIM_DATA_H

#include "fs/source/tree.h"
#include "loader/dataset/dataset.h"

struct sim_data {
	struct tree tree;
	uint32_t *file; /* of each sample: its node of the tree */
	size_t n;
};

/* Fills in sizes and counts of *ret_data, which has no paths. Errors of the
 * source, with a text. sim_data_close and dataset_close, failed or not. */
int sim_data_open(const char *source, struct sim_data *d,
		  struct dataset *ret_data, struct err *err);
/* -EINVAL: the files are shards by their names, as for --format auto. */
int sim_data_check(const struct sim_data *d, const char *source,
		   struct err *err);
void sim_data_close(struct sim_data *d);

#endif
