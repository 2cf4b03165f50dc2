/* SPDX-License-Identifier: MIT */
/* From measured points to a storage profile. */
#ifndef GPEMU_FS_MEASURE_FIT_H
#define GPEMU_FS_MEASURE_FIT_H

#include <stdio.h>

#include "emu/profile/profile_storage.h"
#include "emu/profile/profile_storage.h"
#include "fs/measure/points.h"

/* The texts of a profile that are no numbers. */
struct fit_text {
	const char *name, *source, *notes;
};

/*
 * Write a profile as YAML. -ENODATA with a text: without random reads of 4 KiB
 * and larger ones, one at a time, nothing can be said.
 *
 *	latency		of a 4 KiB read alone, as quantiles, less the bytes
 *	channels	what one read takes longer than one of 4 KiB, by size
 *			up to 1 MiB; beyond, the rate of the line through those
 *			of 128 KiB to 1 MiB; `stripe` if 16 MiB are faster
 *	link		what all reads have together: the middle of those near
 *			the most
 *	iops		4 KiB reads per second: the same over depths
 *	loaded		quantiles of random reads at depths of 1 to 64 (times.h)
 *	names		if the kernel forgets them within POINT_KEPT_MOST
 *	quota		if several depths have the same rate, and most of their
 *			reads take far less than depth / rate: what passes, and
 *			after how long the others do. Then iops and link are
 *			what passes within a window, depth / median
 *
 * If costs add up (serial.h), one channel takes the place of link and iops. It
 * is held by reads for the time between two of many, and by lookups, opens and
 * lists for the same part of their time.
 *
 * If reads that continue the previous one take less than a third of random
 * ones, as on a disk, the difference is a `seek`, one channel serves all, and
 * its share at a depth (`reorder`) is what the rate there says.
 *
 * Of an object store (points with POINT_GET):
 *
 *	latency		to the first byte of the shortest GETs alone, as
 *			quantiles, less the bytes; HEADs are taken to be as slow
 *	channels	what the bytes of the longest GETs alone take from the
 *			first one on, less what those of shorter ones do
 *	link		the middle of the rates near the most; it is no limit of
 *			the store if four times the requests had far more
 *
 * -ENODATA: without shorter and longer GETs alone.
 */
int fit_write(const struct points *p, const struct fit_text *text, FILE *f,
	      struct err *err);

/* The same points as the device model gives them: a client with `depth`
 * operations in flight, on an event clock. Of GETs, the first byte is that of
 * short ones. -ENOMEM. */
int predict_point(const struct storage_profile *profile, const struct point *p,
		  struct point *ret);

#endif
