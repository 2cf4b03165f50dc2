/* SPDX-License-Identifier: MIT */
/*
 * What bounds a training run, measured one stage at a time, and what that
 * predicts. Three rates, as DS-Analyzer takes them (Mohan et al., "Analyzing
 * and Mitigating Data Stalls in DNN Training", VLDB 2021, section 3.2), all in
 * samples per emulated second:
 *
 *	G  the GPU takes them, from batches made out of nothing
 *	P  they are read from fast memory and prepared, with no GPU
 *	F  they are read, neither prepared nor used: F0 with everything in
 *	   storage, F1 with everything in memory
 *
 * DS-Analyzer derives F from the difference of two runs. Here it is measured
 * by itself: in a loader that reads while it prepares, a difference would
 * hide the smaller of the two.
 *
 * When a fraction c of the reads hits a cache, a loader that does everything
 * at once is as fast as its slowest part,
 *
 *	L(c) = min(F0 / (1-c), F1, P)
 *
 * while the times add up where a worker does one thing after the other
 * (engines whose workers own a batch; P contains the reads from memory):
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
	bool serial;	     /* a worker reads and prepares in turn */
	bool on_mount;	     /* of gpemu-fs; else the page cache was used */
	uint64_t samples;    /* that each run took */
};

enum bottleneck { BOUND_BY_GPU, BOUND_BY_PREP, BOUND_BY_FETCH };
extern const char *const bottleneck_names[];

/*
 * Measure P, F0 and F1 over order[0..n), in batches as `c` says; `g` is
 * known. On a gpemu-fs mount storage is set to `ideal` for P and F1, the cache
 * is dropped for F0, and both are as before afterwards, the cache empty.
 * Elsewhere the files' pages are dropped for F0 and read once before P and F1.
 * -ECANCELED: *stop was set. Other errors with a text.
 */
int analyze(const struct pipeline_config *c, const struct mount *m,
	    const uint32_t *order, uint64_t n, double g,
	    const atomic_bool *stop, struct analysis *ret, struct err *err);

/* Samples per emulated second when a fraction 0 <= c <= 1 of the reads hits. */
double analysis_rate(const struct analysis *a, double c, enum bottleneck *ret);
/* The smallest c with which storage is not what bounds the run; > 1: none. */
double analysis_enough_cache(const struct analysis *a);

/* The rates, the prediction for c = 0, 0.1 .. 1, and, on a gpemu-fs mount,
 * each of the n epochs beside what was predicted for its share of hits. */
json_t *analysis_json(const struct analysis *a, struct account *const *epoch,
		      size_t n);
void analysis_print(const struct analysis *a, FILE *f);

#endif
