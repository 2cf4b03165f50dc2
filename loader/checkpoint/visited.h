/* SPDX-License-Identifier: MIT */
/*
 * Which samples of the epoch have been trained on, and, when asked for, a log
 * of them: a line for each, "EPOCH STEP SAMPLE PATH", the step counted over
 * the whole run from 0, the path as in loader/order/order_text.h.
 *
 * The set is kept by sample and not by place in the order: engines that fill
 * batches as samples arrive leave the order within a window, so no number of
 * batches says which samples were in them.
 *
 * One thread.
 */
#ifndef GPEMU_LOADER_CHECKPOINT_VISITED_H
#define GPEMU_LOADER_CHECKPOINT_VISITED_H

#include <stdint.h>
#include <stdio.h>

#include "common/err.h"
#include "loader/pipeline/delivery.h"

struct visited {
	const struct dataset *data; /* NULL: samples have no identity */
	uint8_t *bits;		    /* n_bytes; NULL without data */
	size_t n_bytes;
	FILE *log; /* NULL: not asked for */
	const char *log_path;
};

/* None visited. `data` may be NULL. -ENOMEM. */
int visited_init(struct visited *v, const struct dataset *data,
		 struct err *err);
void visited_fini(struct visited *v);

/*
 * Log to `path` from now on, behind its first `keep` bytes (< 0: from its
 * beginning). -ESTALE: it is shorter than that; others as open(2).
 */
int visited_log(struct visited *v, const char *path, int64_t keep,
		struct err *err);
/* Hand what was logged to the kernel; *ret_bytes is how long the log is then,
 * -1 without one or when it has no length (a pipe). -errno of the log. */
int visited_flush(struct visited *v, int64_t *ret_bytes, struct err *err);

/* A batch was trained on. Returns how many of its samples are new to the
 * epoch. */
uint32_t visited_add(struct visited *v, uint64_t epoch, uint64_t step,
		     const struct delivery *d);
/*
 * Shannon entropy of the classes in a batch, bits: 0 when all samples are of
 * one, log2(n) when each is of another. < 0: samples have no identity, or
 * there is no memory.
 */
double visited_class_bits(const struct visited *v, const struct delivery *d);
/* Another epoch begins. */
void visited_clear(struct visited *v);

/* Move the samples that were not visited to the front of order[0..n), in
 * their order; returns how many. */
uint64_t visited_filter(const struct visited *v, uint32_t *order, uint64_t n);

#endif
