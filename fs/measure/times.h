/* SPDX-License-Identifier: MIT */
/* Durations of measured points, as a profile gives them. */
#ifndef GPEMU_FS_MEASURE_TIMES_H
#define GPEMU_FS_MEASURE_TIMES_H

#include <stdio.h>

#include "fs/measure/points.h"

/* The depths at which several sizes are measured: powers of two up to this. */
enum { TIMES_DEPTH = 64 };

/* A distribution `key`: the quantiles less `less` ns, of the fastest part `to`;
 * 1: of all. */
void times_write(FILE *f, const char *key, const struct point *p, double less,
		 double to);

/* The part of a point's reads that surely did not wait for a quota with that
 * window; 1 without one, 0. */
double times_passing(const struct point *p, double window_ns);

/* `loaded` of a class: random reads at the depths at which two sizes or more
 * were measured, without those that waited for a quota. */
void times_write_loaded(const struct points *p, double window_ns, FILE *f);

#endif
