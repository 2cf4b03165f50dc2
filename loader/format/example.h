/* SPDX-License-Identifier: MIT */
/* Reads the image and label of a tf.train.Example, without TensorFlow. */
#ifndef GPEMU_LOADER_FORMAT_EXAMPLE_H
#define GPEMU_LOADER_FORMAT_EXAMPLE_H

#include <stdbool.h>
#include <stdint.h>

#include "loader/dataset/peek.h"

/* Names of features, with commas between them: the first that an Example has
 * is taken. */
struct example_names {
	const char *image, *label;
};

enum { EXAMPLE_KEY = 104 }; /* bytes of a name that are kept, with the NUL */

struct example_feature {
	int rank;	       /* in its list; -1: there is none */
	char key[EXAMPLE_KEY]; /* its name */
	bool found;	       /* it has a value of the right type */
};

struct example {
	struct example_feature image, label;
	uint64_t offset, size; /* of the image, in the file */
	int64_t value;	       /* of the label */
	size_t n_features;
	char first[EXAMPLE_KEY]; /* one of them */
};

/*
 * Parse the message of `n` bytes at `at`. Reads only its keys and lengths.
 * -EBADMSG: not a complete Example; errors of peek_get but -ENODATA.
 */
int example_find(struct peek *p, uint64_t at, uint64_t n,
		 const struct example_names *names, struct example *ret);

#endif
