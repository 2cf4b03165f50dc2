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
	uint64_t offset; /* offset of the data in the file */
	uint64_t bytes;	 /* size of the data */
	bool fortran;
	unsigned n_dimensions; /* 0: a scalar */
	uint64_t shape[NPY_DIMENSIONS];
};

/*
 * Read the header of the array of `n` bytes at `at`, which are inside the file.
 * The data are inside them too. -EINVAL with a text: damaged, truncated, an
 * array of objects (pickled) or of records of several types.
 */
int npy_parse(struct peek *p, uint64_t at, uint64_t n, struct npy *ret,
	      struct err *err);

/* Are these bytes the start of an array file? */
bool npy_looks(const uint8_t *head, size_t n);

#endif
