/* SPDX-License-Identifier: MIT */
/*
 * Orders as text; --dump-order writes and --replay-order reads them:
 *
 *	# a comment
 *	epoch 0
 *	17 class1/a.jpg
 *	3 class0/b.jpg
 *	...
 *	epoch 1
 *	...
 *
 * A line is a sample's index in the dataset, from 0, and its path. The path is
 * optional; if present, it is checked. A backslash and control characters in it
 * are written \\, \n, \xHH. Epochs ascend, and each lists every sample of the
 * dataset once; after a first line "repeats" as many, of which some may be the
 * same.
 */
#ifndef GPEMU_LOADER_ORDER_ORDER_TEXT_H
#define GPEMU_LOADER_ORDER_ORDER_TEXT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/err.h"
#include "loader/dataset/dataset.h"

/* Writes a space, the sample's path as above and a newline; without data only
 * the newline. Check ferror(f) for errors. */
void order_text_put_path(FILE *f, const struct dataset *data, uint32_t sample);

/* One epoch. */
void order_text_put(FILE *f, uint64_t epoch, const uint32_t *order, uint64_t n,
		    const struct dataset *data);

struct order_text;

/*
 * Open `path` and check the whole file. `data` may be NULL: paths are then not
 * checked. -EINVAL with "path:line:column: what"; others as open(2).
 */
int order_text_open(const char *path, uint64_t n, const struct dataset *data,
		    struct order_text **ret, struct err *err);
/* NULL is allowed. */
void order_text_close(struct order_text *t);
/* The n samples of an epoch. -ENOENT: the file lacks it. */
int order_text_fill(struct order_text *t, uint64_t epoch, uint32_t *ret,
		    struct err *err);
/* May an epoch have a sample several times? */
bool order_text_repeats(const struct order_text *t);
/* A hash of the orders: equal for files with equal content. */
uint64_t order_text_hash(const struct order_text *t);

#endif
