/* SPDX-License-Identifier: MIT */
/*
 * The dataset of a simulation: the sizes of the files of a SOURCE of gpemu-fs
 * (a folder, pack:FILE, or synth:DATASET), none of which is read. A sample is a
 * file, numbered as the loader numbers them behind the mount, or a part of a
 * shard of a folder, as the loader lists them there.
 */
#ifndef GPEMU_LOADER_SIM_SIM_DATA_H
#define GPEMU_LOADER_SIM_SIM_DATA_H

#include "fs/source/tree.h"
#include "loader/dataset/dataset.h"
#include "loader/dataset/format.h"

struct sim_data {
	struct tree tree;
	uint32_t *file;	 /* n: the nodes of the tree that are samples, if the
			  * dataset has no containers */
	uint32_t *shard; /* of each container: its node; NULL: it has none */
	size_t n;
};

/* Fills in sizes and counts of *ret_data, which has no paths. Errors of the
 * source, with a text. sim_data_close and dataset_close, failed or not. */
int sim_data_open(const char *source, struct sim_data *d,
		  struct dataset *ret_data, struct err *err);
/* The format of the shards among them, by their names; NULL: files, as for
 * --format auto. -EINVAL with a text. */
int sim_data_format(const struct sim_data *d, const char *source,
		    const struct format_ops **ret, struct err *err);
/* Finds the containers of `data`, which was listed from the same folder.
 * -ESTALE with a text: not all are there. */
int sim_data_shards(struct sim_data *d, const struct dataset *data,
		    const char *source, struct err *err);
void sim_data_close(struct sim_data *d);

#endif
