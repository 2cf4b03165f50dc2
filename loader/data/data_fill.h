/* SPDX-License-Identifier: MIT */
/* Writing the files of a recipe into a folder, on several threads. */
#ifndef GPEMU_LOADER_DATA_DATA_FILL_H
#define GPEMU_LOADER_DATA_DATA_FILL_H

#include "common/program/progress.h"
#include "loader/data/data_recipe.h"

struct data_fill_counts {
	uint64_t files;	  /* written in this run */
	uint64_t bytes;	  /* bytes in them */
	uint64_t kept;	  /* kept from an earlier run */
	uint64_t encodes; /* attempts at a JPEG */
	uint64_t padding_bytes;
	double worst_padding;	   /* as a share of a file */
	uint64_t pool_ns, fill_ns; /* wall time */
};

/*
 * Create the class folders and every file of `sizes` that is missing or has
 * another size. A file appears whole or not at all. The bytes depend on the
 * recipe alone, not on the number of threads. -EINTR: a signal came; -errno
 * with a text. `ret` is filled in either way.
 */
int data_fill(const struct data_recipe *recipe, const char *dir,
	      const uint64_t *sizes, unsigned n_threads,
	      enum progress_mode progress, struct data_fill_counts *ret,
	      struct err *err);

/* Remove the files and folders that any recipe made, and its record. */
int data_fill_clear(const char *dir, struct err *err);

#endif
