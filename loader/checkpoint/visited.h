/* SPDX-License-Identifier: MIT */
/*
 * Which samples of the epoch have been trained on, and optionally a log of
 * them: a line for each, "EPOCH STEP SAMPLE PATH", the step counted over the
 * whole run from 0, the path as in loader/order/order_text.h.
 *
 * The set holds samples, not positions in the order. Engines that fill batches
 * on completion leave the order within a window, so a number of batches does
 * not identify the samples in them. Where an order repeats samples, the set
 * counts how often each came.
 *
 * One thread.
 */
#ifndef GPEMU_LOADER_CHECKPOINT_VISITED_H
#define GPEMU_LOADER_CHECKPOINT_VISITED_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/err.h"
#include "loader/pipeline/delivery.h"

struct visited {
	const struct dataset *data; /* NULL: samples have no identity */
	/* a bit for each sample, or, if they repeat, a uint32_t: n_bytes; NULL
	 * without data */
	uint8_t *bits;
	size_t n_bytes;
	bool repeats;
	/* of each, scratch of visited_filter; NULL unless they repeat */
	uint32_t *skipped;
	uint32_t *count; /* by class, zeros between calls; NULL: not counted */
	FILE *log;	 /* NULL: no log */
	const char *log_path;
};

/* Starts with none visited. `data` may be NULL. `repeats`: samples may come
 * several times in an epoch. -ENOMEM; visited_fini in any
 * case. */
int visited_init(struct visited *v, const struct dataset *data, bool repeats,
		 struct err *err);
void visited_fini(struct visited *v);

/*
 * Log to `path` from now on, after its first `keep` bytes (< 0: from its
 * start). -ESTALE: it is shorter than that; others as open(2).
 */
int visited_log(struct visited *v, const char *path, int64_t keep,
		struct err *err);
/* Write buffered lines to the kernel. *ret_bytes is the length of the log; -1:
 * no log, or one without a length (a pipe). -errno of the log. */
int visited_flush(struct visited *v, int64_t *ret_bytes, struct err *err);

/* A batch was trained on. Returns the number of its usable samples that are new
 * in the epoch. */
uint32_t visited_add(struct visited *v, uint64_t epoch, uint64_t step,
		     const struct delivery *d);
/*
 * Shannon entropy of the classes in a batch, bits: 0 if all samples have one
 * class, log2(n) if all differ. < 0: samples have no identity, or
 * labels are too large for classes.
 */
double visited_class_bits(struct visited *v, const struct delivery *d);
/* Start another epoch. */
void visited_clear(struct visited *v);

/* How many visits there are in `bits` of another set like this one. */
uint64_t visited_count(const struct visited *v, const uint8_t *bits);
/* Move the unvisited samples to the front of order[0..n), keeping their order;
 * returns their number. */
uint64_t visited_filter(const struct visited *v, uint32_t *order, uint64_t n);

#endif
