/* SPDX-License-Identifier: MIT */
/* The round trip of a mount (fs/device/calibrate.h), measured when it begins.
 */
#ifndef GPEMU_FS_FRONT_FRONT_CALIBRATE_H
#define GPEMU_FS_FRONT_FRONT_CALIBRATE_H

#include "fs/front/front_private.h"

/* Start it, once the mount is usable, on a thread of its own; that thread then
 * calls front_config.ready. */
void front_calibrate(struct front *f);
/* Join the thread; after the end of the connection to the kernel. */
void front_calibrate_end(struct front *f);

#endif
