/* SPDX-License-Identifier: MIT */
/* Measures one point of a storage device, as a program on it sees it. */
#ifndef GPEMU_FS_MEASURE_PROBE_H
#define GPEMU_FS_MEASURE_PROBE_H

#include "common/tick.h"
#include "fs/measure/area.h"
#include "fs/measure/points.h"

/* Bytes in flight at most. Arbitrary: no laptop lacks them. */
enum { PROBE_BYTES = 64 << 20 };

/*
 * Fill in the results of `p`: operations for `ns` of time, at least a few.
 * Reads go through io_uring, `p->depth` of them in flight from one thread.
 * -ENODATA: cannot be measured here, `why` (static) is the reason. -EINTR:
 * `stop` came. Else -errno with a text.
 */
int probe(const struct area *a, struct point *p, uint64_t ns, struct tick *tick,
	  struct stop *stop, const char **why, struct err *err);

#endif
