/* SPDX-License-Identifier: MIT */
/* What a tf.train.Example says about an image, without TensorFlow. */
#ifndef GPEMU_LOADER_FORMAT_EXAMPLE_H
#define GPEMU_LOADER_FORMAT_EXAMPLE_H

#include <stdbool.h>
#include <stdint.h>

#include "loader/dataset/peek.h"

struct example {
	bool has_image;
	uint64_t offset, size; /* in the file: of `image/encoded` */
	bool has_label;
	int64_t label; /* `image/class/label` */
};

/*
 * Walk the message that is `n` bytes at `at`; only its keys and lengths are
 * read. -EBADMSG: it is not an Example from end to end; errors of peek_get
 * but -ENODATA.
 */
int example_find(struct peek *p, uint64_t at, uint64_t n, struct example *ret);

#endif
