/* SPDX-License-Identifier: MIT */
/*
 * What a request to the mount takes without any device: the way through the
 * kernel, the wake-up of this process, and back. It comes on top of every
 * emulated duration, as its reader sees it, and is known beforehand: measured
 * once at the start and taken off the deadlines.
 */
#ifndef GPEMU_FS_CALIBRATE_H
#define GPEMU_FS_CALIBRATE_H

#include <stdint.h>

struct round_trip {
	uint64_t busy_ns, idle_ns; /* wall */
};

/* How long the probes are to be delayed, wall: as long as what a fast device
 * takes. */
#define CALIBRATE_PROBE_NS 400000u

/*
 * busy_ns, for requests among others: half of the shortest of many reads of a
 * `file` in the mount's `dir` that costs nothing, one behind the other. The
 * rest of what a reader waits on top is the wake-up of sleeping threads, which
 * varies too much to be taken off: with three quarters some of a thousand
 * readers had their bytes early.
 *
 * idle_ns, for a request that is alone: what lookups in `dir` of names
 * "probe-N", which the mount must answer (with ENOENT) after probe_ns, take
 * more than that, as nine of ten do. While one reader waits the processors
 * fall asleep too, and waking one takes longer than the rest of the way.
 *
 * Takes some 60 ms. From any thread but those that serve the mount. -errno.
 */
int calibrate_round_trip(const char *dir, const char *file, uint64_t probe_ns,
			 struct round_trip *ret);

#endif
