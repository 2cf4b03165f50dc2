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

/*
 * Half of the shortest of many reads of a file in the mount that costs nothing
 * (`path`), wall ns. The rest of what a reader waits on top is the wake-up of
 * sleeping threads, which varies too much to be taken off: with three quarters
 * some of a thousand readers had their bytes early. From any thread but those
 * that serve the mount. -errno.
 */
int calibrate_round_trip(const char *path, uint64_t *ret_ns);

#endif
