/* SPDX-License-Identifier: MIT */
/*
 * How many workers a preparation service needs.
 *
 * Worker i reports the time that an element takes it, so it makes 1 / p_i.
 * Consumer j reports the time that it takes for an element when it never waits,
 * its target, so it consumes 1 / t_j. Reports that are off are replaced, and
 *
 *	workers = max(1, ceil(sum of 1 / t_j / mean of 1 / p_i))
 *
 * Off is a rate more than one standard deviation from the mean; the median
 * replaces it. Neither rate depends on how many workers there are, so the loop
 * of reports and estimates has a fixed point and needs no hysteresis; only its
 * growth is limited, because first reports are rough.
 *
 * Source: tf.data service, tensorflow/core/data/service/auto_scaler.cc;
 * Audibert et al., "tf.data service: A Case for Disaggregating ML Input Data
 * Processing", SoCC 2023.
 */
#ifndef GPEMU_SERVICE_DECIDE_SCALE_H
#define GPEMU_SERVICE_DECIDE_SCALE_H

#include <stddef.h>
#include <stdint.h>

/* Source: auto_scaler.cc */
enum { SCALE_FACTOR = 4, SCALE_STEP = 500, SCALE_MOST = 100000 };

/*
 * The formula, for one job: n_workers times of an element, n_consumers targets,
 * in ns, all above 0. A fleet that several jobs share needs the largest of
 * their estimates. -EAGAIN: no worker or no consumer has reported yet; -EINVAL:
 * a time of 0; -ENOMEM.
 */
int scale_estimate(const uint64_t *processing_ns, size_t n_workers,
		   const uint64_t *target_ns, size_t n_consumers,
		   uint64_t *ret);

/*
 * The number of workers to have next, with `current` of them, at least one:
 * down to the estimate at once, up by SCALE_FACTOR or SCALE_STEP at most, the
 * smaller; never above SCALE_MOST.
 */
uint64_t scale_next(uint64_t current, uint64_t estimate);

#endif
