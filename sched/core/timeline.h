/* SPDX-License-Identifier: MIT */
/*
 * A quantity over time in at most TIMELINE_BINS bins of equal width, whose mean
 * it holds. The width is not known before the end: it doubles when the bins are
 * full, and so at least half of them are in use.
 */
#ifndef GPEMU_SCHED_CORE_TIMELINE_H
#define GPEMU_SCHED_CORE_TIMELINE_H

#include <stddef.h>
#include <stdint.h>

enum { TIMELINE_BINS = 256 };

struct sched_timeline {
	uint64_t start_ns, end_ns;
	uint64_t bin_ns;	   /* width */
	double sum[TIMELINE_BINS]; /* quantity times ns */
};

void timeline_init(struct sched_timeline *t, uint64_t start_ns);
/* It was `value` from the end up to `to_ns`, which is the new end. */
void timeline_add(struct sched_timeline *t, uint64_t to_ns, double value);
/* Bins up to the end, and the mean of one over that part of it which is not
 * beyond the end. */
size_t timeline_n(const struct sched_timeline *t);
double timeline_mean(const struct sched_timeline *t, size_t bin);

#endif
