/* SPDX-License-Identifier: MIT */
/* Work on numbered items by several threads, with results taken in order. */
#ifndef GPEMU_LOADER_DATASET_POOL_H
#define GPEMU_LOADER_DATASET_POOL_H

#include <stddef.h>

#include "common/err.h"

struct pool {
	size_t n; /* items */
	unsigned threads;
	void *ctx;
	/* Item `i`, on any thread, begun in the order of their numbers. 0 or
	 * -errno with a text. */
	int (*work)(void *ctx, size_t i, struct err *err);
	/* After its work: item 0, 1, ..., one at a time. NULL: nothing to do.
	 */
	int (*take)(void *ctx, size_t i, struct err *err);
};

/*
 * Do all items; returns when no thread works any more. The error of the first
 * item that failed, by number: the same however the threads ran. Items behind
 * it may not have been worked on, and are not taken. -ENOMEM.
 */
int pool_run(const struct pool *p, struct err *err);

#endif
