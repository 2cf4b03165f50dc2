/* SPDX-License-Identifier: MIT */
/* What a storage profile says of the points at which a device is measured. */
#ifndef GPEMU_FS_MEASURE_PREDICT_H
#define GPEMU_FS_MEASURE_PREDICT_H

#include "emu/profile/profile_storage.h"
#include "fs/measure/points.h"

/* The same points as the device model gives them: a client with `depth`
 * operations in flight, on an event clock. Of GETs, the first byte is that of
 * short ones. -ENOMEM. */
int predict_point(const struct storage_profile *profile, const struct point *p,
		  struct point *ret);

#endif
