/* SPDX-License-Identifier: MIT */
/* The header of a NumPy array file (.npy), versions 1 to 3. */
#ifndef GPEMU_LOADER_FORMAT_NPY_H
#define GPEMU_LOADER_FORMAT_NPY_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "loader/dataset/peek.h"

/* Source: NPY_MAXDIMS of NumPy 2; 32 before it */
enum { NPY_DIMENSIONS = 64 };

struct npy {
	uint64_t offset; /* of the data, in the file */
	uint64_t bytes;	 /* of the data */
	bool fortran;
	unsigned n_dimensions; /* 0: one number */
	uint64_t shape[NPY_DIMENSIONS];
};

/*
 * Read the header of the array that is the `n` bytes at `at`, which are inside
 * the file. The data are then too. -EINVAL with a text for what is damaged,
 * truncated, or of objects (pickled) or of records of several types.
 */
int npy_parse(struct peek *p, uint64_t at, uint64_t n, struct npy *ret,
	      struct err *err);

/* Do these bytes begin an array file? */
bool npy_looks(const uint8_t *head, size_t n);

#endif
