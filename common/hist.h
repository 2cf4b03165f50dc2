/* SPDX-License-Identifier: MIT */
/*
 * Histogram of durations in ns: log-linear buckets, 64 to each power of two,
 * so a percentile is within 0.8 % of the truth; count, mean and max are exact.
 * hist_add is one relaxed atomic each for bucket, sum and max: any thread may
 * add while another reads (the reader sees some recent state).
 */
#ifndef GPEMU_COMMON_HIST_H
#define GPEMU_COMMON_HIST_H

#include <jansson.h>
#include <stdint.h>

enum {
	HIST_SUB_BITS = 6,
	HIST_SUB = 1 << HIST_SUB_BITS,
	/* 0 ns .. 2^43 ns = 2.4 hours; longer goes to the last bucket */
	HIST_BUCKETS = (43 - HIST_SUB_BITS + 1) * HIST_SUB,
};

/* All zeros is an empty histogram; there is no fini. */
struct hist {
	uint64_t bucket[HIST_BUCKETS];
	uint64_t n;
	uint64_t sum_ns;
	uint64_t max_ns;
};

void hist_add(struct hist *h, uint64_t ns);
/* The same, so many times, where only one thread adds: without locked
 * instructions. */
void hist_add_alone(struct hist *h, uint64_t ns, uint64_t times);
/* Reset, while other threads may be adding. */
void hist_reset(struct hist *h);
void hist_merge(struct hist *into, const struct hist *from);
/* The q-quantile in ns, 0 <= q <= 1; 0 when empty. */
double hist_quantile(const struct hist *h, double q);
/* Mean in ns; 0 when empty. */
double hist_mean(const struct hist *h);
/* {"mean","p50","p90","p99","max"} in units of `unit_ns`; NULL: no memory. */
json_t *hist_json(const struct hist *h, double unit_ns);

#endif
