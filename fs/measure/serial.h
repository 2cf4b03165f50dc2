/* SPDX-License-Identifier: MIT */
/* A server that works on one request at a time, as a FUSE process does. */
#ifndef GPEMU_FS_MEASURE_SERIAL_H
#define GPEMU_FS_MEASURE_SERIAL_H

#include <stdbool.h>

#include "fs/measure/points.h"

enum { SERIAL_SIZES = 8 };

/* Time between two reads of a size, where more in flight give no more; at most
 * that of one alone. */
struct serial {
	size_t n; /* ascending by bytes */
	struct {
		double bytes, ns;
	} at[SERIAL_SIZES];
	double each_ns; /* of a read without bytes */
};

/*
 * Do the costs of a read and of its bytes add up? Where those of a read are as
 * long as those of its bytes, a read then takes twice as long as with limits
 * that overlap: the longer of 1 / per_s and bytes / mb_per_s (10^6 a second).
 * The points of POINTS_BETWEEN, which neither is made from, decide by what they
 * are closer to.
 */
bool serial_fit(const struct points *p, double per_s, double mb_per_s,
		struct serial *ret);

#endif
