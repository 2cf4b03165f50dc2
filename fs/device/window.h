/* SPDX-License-Identifier: MIT */
/* A quota in each window of a fixed grid of time. */
#ifndef GPEMU_FS_DEVICE_WINDOW_H
#define GPEMU_FS_DEVICE_WINDOW_H

#include <stdint.h>

#include "common/util.h"

/* No sum of times exceeds this: 31 years. arbitrary: the caller may add to it,
 * and scale it */
#define LAST_NS ((uint64_t)1000000000000000000)

static inline uint64_t later(uint64_t at, uint64_t ns)
{
	return at < LAST_NS && ns < LAST_NS - at ? at + ns : MAX(at, LAST_NS);
}

/* The window that has room: one of now, or later. All zeros at the start. */
struct window {
	uint64_t begin; /* ns */
	double used;
};

/* When a quota of `most` in each window lets the last of `n` pass, ns. */
uint64_t window_pass(struct window *w, uint64_t window_ns, double most,
		     double n, uint64_t now);

#endif
