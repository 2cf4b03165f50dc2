/* SPDX-License-Identifier: MIT */
/*
 * The bottleneck of a training run, measured one stage at a time, and the rates
 * predicted from it. Three rates, as in DS-Analyzer (Mohan et al., "Analyzing
 * and Mitigating Data Stalls in DNN Training", VLDB 2021, section 3.2), all in
 * samples per emulated second:
 *
 *	G  the GPU's, with batches made out of nothing
 *	P  of reads from fast memory and transforms, without a GPU
 *	F  of reads alone: F0 with everything in storage, F1 with everything
 *	   in memory
 *
 * DS-Analyzer derives F from the difference of two runs. Here it is measured
 * directly: in a loader that overlaps reads with transforms, a difference would
 * hide the smaller of the two.
 *
 * When a fraction c of the reads hits a cache, a loader that overlaps
 * everything is as fast as its slowest part,
 *
 *	L(c) = min(F0 / (1-c), F1, P)
 *
 * If a worker does one thing after the other (engines whose workers own a
 * batch; P contains the reads from memory), the times add up:
 *
 *	1/L(c) = c/F1 + (1-c)/F0 + (1/P - 1/F1)
 *
 * The GPU then takes min(G, L(c)).
 */
#ifndef GPEMU_LOADER_ACCOUNT_ANALYZE_H
#define GPEMU_LOADER_ACCOUNT_ANALYZE_H

#include <jansson.h>
#include <stdatomic.h>
#include <stdio.h>

#include "common/err.h"
#include "loader/account/account.h"
#include "loader/dataset/mount.h"
#include "loader/pipeline/pipeline.h"

struct analysis {
	double g, p, f0, f1; /* samples per emulated second */
	bool serial;	     /* a worker reads and transforms in turn */
	bool on_mount;	     /* a gpemu-fs mount; else the page cache */
	uint64_t samples;    /* time of each run */
};

enum bottleneck { BOUND_BY_GPU, BOUND_BY_PREP, BOUND_BY_FETCH };

/*
 * Measure P, F0 and F1 over order[0..n), in batches as in `c`; `g` is known. On
 * a gpemu-fs mount, storage is set to `ideal` for P and F1 and the cache is
 * dropped for F0; afterwards both are restored, the cache empty. Elsewhere the
 * files' pages are dropped for F0 and read once before P and F1. -ECANCELED:
 * *stop was set. Other errors with a text.
 */
int analyze(const struct pipeline_config *c, const struct dataset_mount *m,
	    const uint32_t *order, uint64_t n, double g,
	    const atomic_bool *stop, struct analysis *ret, struct err *err);

/* The rates, the prediction for c = 0, 0.1 .. 1, and, on a gpemu-fs mount, each
 * of the n epochs beside the prediction for its hit ratio. */
json_t *analysis_json(const struct analysis *a,
		      struct train_account *const *epoch, size_t n);
void analysis_print(const struct analysis *a, FILE *f);

#endif
