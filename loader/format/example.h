/* SPDX-License-Identifier: MIT */
/* Reads the image and label of a tf.train.Example, without TensorFlow. */
#ifndef GPEMU_LOADER_FORMAT_EXAMPLE_H
#define GPEMU_LOADER_FORMAT_EXAMPLE_H

#include <stdbool.h>
#include <stdint.h>

#include "loader/dataset/peek.h"

struct example {
	bool has_image;
	uint64_t offset, size; /* of `image/encoded`, in the file */
	bool has_label;
	int64_t label; /* `image/class/label` */
};

/*
 * Parse the message of `n` bytes at `at`. Reads only its keys and lengths.
 * -EBADMSG: not a complete Example; errors of peek_get but -ENODATA.
 */
int example_find(struct peek *p, uint64_t at, uint64_t n, struct example *ret);

#endif
