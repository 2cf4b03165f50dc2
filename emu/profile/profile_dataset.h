/* SPDX-License-Identifier: MIT */
/*
 * The outline of a dataset: number and sizes of files, number of class folders.
 * Not its content.
 */
#ifndef GPEMU_EMU_PROFILE_PROFILE_DATASET_H
#define GPEMU_EMU_PROFILE_PROFILE_DATASET_H

#include <stdbool.h>
#include <stdint.h>

#include "emu/profile/profile.h"

/* One point of the size distribution; linear between points. */
struct dataset_quantile {
	double q; /* 0..1, ascending, first 0, last 1 */
	double bytes;
};

struct dataset_profile {
	char *name;
	char *source;
	char *notes;
	bool verified; /* every number was read at its source */
	uint64_t files;
	uint64_t classes; /* folders; 0: all files in one */
	uint64_t samples_per_file;
	char *format;		/* jpeg, npz, tfrecord, parquet, ... */
	struct conf_list sizes; /* struct dataset_quantile, >= 2 */
};

PROFILE_DECLARE(dataset);
/* Files whose sizes are normal with this mean and deviation in bytes; what is
 * below 1 is 1. -ENOMEM with a text. */
int dataset_profile_normal(uint64_t files, double mean, double sd,
			   struct dataset_profile *ret, struct err *err);

/* File size in bytes at quantile q (0..1); mean file size in bytes. */
double dataset_profile_quantile(const struct dataset_profile *p, double q);
double dataset_profile_mean(const struct dataset_profile *p);

#endif
